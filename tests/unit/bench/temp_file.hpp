// A file for one test, gone with the object.
#pragma once

#include <unistd.h>
#include <zlib.h>

#include <cstdio>
#include <cstdlib>
#include <string>

namespace railhead::bench {

class TempFile {
 public:
  explicit TempFile(const std::string& text) : path_(make_path()) {
    FILE* file = std::fopen(path_.c_str(), "wb");
    std::fwrite(text.data(), 1, text.size(), file);
    std::fclose(file);
  }
  ~TempFile() { unlink(path_.c_str()); }
  TempFile(const TempFile&) = delete;
  TempFile& operator=(const TempFile&) = delete;

  void replace_with_gzip(const std::string& text) const {
    const gzFile file = gzopen(path_.c_str(), "wb");
    gzwrite(file, text.data(), static_cast<unsigned>(text.size()));
    gzclose(file);
  }

  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  static std::string make_path() {
    char name[] = "/tmp/railhead-test-XXXXXX";
    close(mkstemp(name));
    return name;
  }

  std::string path_;
};

}  // namespace railhead::bench
