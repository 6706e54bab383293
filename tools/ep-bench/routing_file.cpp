#include <zlib.h>

#include <cerrno>
#include <memory>
#include <vector>

#include "tools/ep-bench/routing_sources.hpp"

namespace railhead::bench {

Result<std::string> read_maybe_gzip(const std::string& path) {
  constexpr std::size_t kMostBytes = std::size_t{1} << 30;  // unpacked; a small file can unpack to anything
  errno = 0;
  const std::unique_ptr<gzFile_s, int (*)(gzFile)> file(gzopen(path.c_str(), "rb"), gzclose);
  if (!file) return fail(system_status("open " + path, errno != 0 ? errno : ENOMEM));
  std::string text;
  std::vector<char> block(1 << 16);
  while (text.size() <= kMostBytes) {
    const int got = gzread(file.get(), block.data(), static_cast<unsigned>(block.size()));
    if (got > 0) {
      text.append(block.data(), static_cast<std::size_t>(got));
      continue;
    }
    int error = Z_OK;
    const std::string why = gzerror(file.get(), &error);
    if (error == Z_ERRNO) return fail(system_status("read " + path, errno));
    // A cut-off gzip file ends with Z_BUF_ERROR and no negative count.
    if (error != Z_OK) return fail(Code::invalid_argument, path + ": damaged gzip data: " + why);
    return text;
  }
  return fail(Code::limit_exceeded, path + ": more than " + std::to_string(kMostBytes) + " bytes of text");
}

}  // namespace railhead::bench
