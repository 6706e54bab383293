// epctl ls: tables of what the daemon holds.
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "tools/epctl/admin_call.hpp"
#include "tools/epctl/commands.hpp"
#include "tools/epctl/table.hpp"

namespace railhead::epctl {
namespace {

// One column: its title and the cell of one entry.
struct Column {
  std::string title;
  std::function<std::string(const Json&)> cell;
};

// One table of a snapshot: the entries of the array `key`.
struct Listing {
  std::string key;
  std::string none;  // said when there are no entries
  std::vector<Column> columns;
};

std::string text_of(const Json& value) {
  if (value.is_string()) return printable(value.get<std::string>());
  return value.is_null() ? "-" : value.dump();
}

Column plain(const std::string& title, const std::string& key) {
  return {title, [key](const Json& entry) {
            const std::string text = text_of(entry.value(key, Json()));
            return text.empty() ? "-" : text;
          }};
}

Column flag(const std::string& title, const std::string& key, const std::string& yes, const std::string& no) {
  return {title, [=](const Json& entry) { return entry.value(key, false) ? yes : no; }};
}

Column bytes(const std::string& title, const std::string& key) {
  return {title, [key](const Json& entry) { return bytes_text(entry.value(key, 0.0)); }};
}

std::string joined(const Json& list, const std::function<std::string(const Json&)>& text) {
  std::string out;
  for (const auto& item : list) out += (out.empty() ? "" : " ") + text(item);
  return out.empty() ? "-" : out;
}

std::string memberships(const Json& session) {
  return joined(session.value("groups", Json::array()),
                [](const Json& m) { return m.value("group", "") + ":" + text_of(m.value("rank", Json())); });
}

std::string local_ranks(const Json& group) {
  return joined(group.value("local_ranks", Json::array()), [](const Json& r) {
    return text_of(r.value("rank", Json())) + (r.value("present", false) ? "" : "(gone)");
  });
}

// The last operation that is complete on all ranks of this host.
std::string completed(const Json& group) {
  Json least;
  for (const auto& rank : group.value("local_ranks", Json::array())) {
    const Json here = rank.value("completed", Json());
    if (!here.is_null() && (least.is_null() || here < least)) least = here;
  }
  return text_of(least);
}

std::string group_note(const Json& group) {
  if (group.contains("ended")) return printable(group["ended"].value("reason", ""));
  if (!group.contains("missing")) return "-";
  return "missing: " + joined(group["missing"], text_of);
}

std::vector<Listing> sessions() {
  return {{"sessions",
           "no sessions",
           {plain("SESSION", "session"),
            plain("PID", "pid"),
            plain("UID", "uid"),
            plain("JOB", "job"),
            {"AGE", [](const Json& e) { return duration_text(e.value("age_s", 0.0)); }},
            flag("STATE", "ended", "ended", "open"),
            {"GROUP:RANK", memberships}}}};
}

std::vector<Listing> groups() {
  return {{"groups",
           "no groups",
           {plain("GROUP", "group"),
            plain("STATE", "state"),
            plain("EPOCH", "epoch"),
            plain("RANKS", "ranks"),
            plain("HOSTS", "hosts"),
            plain("EXPERTS", "experts"),
            plain("HIDDEN", "hidden"),
            plain("TOPK", "topk"),
            {"OPS", completed},
            {"LOCAL RANKS", local_ranks},
            {"NOTE", group_note}}}};
}

std::vector<Listing> arenas() {
  return {{"arenas",
           "no arenas",
           {plain("GROUP", "group"), plain("RANK", "rank"), plain("SEGMENTS", "segments"), bytes("ARENA", "bytes"),
            bytes("RAIL", "rail_bytes"), flag("STATE", "quarantined", "quarantined", "held")}}};
}

std::vector<Listing> rings() {
  return {{"rings",
           "no rings: a group on one host needs none",
           {plain("GROUP", "group"), plain("RANK", "rank"), plain("DIRECTION", "direction"), plain("STAGE", "stage"),
            plain("HOME", "home"), plain("CHANNEL", "channel"), plain("PEER", "peer"), plain("HEAD", "head"),
            plain("TAIL", "tail")}}};
}

std::vector<Listing> peers() {
  return {{"mesh",
           "no mesh peers: no group spans hosts",
           {plain("HOST", "host_id"), plain("MESH", "endpoint"), flag("STATE", "up", "up", "down"),
            plain("ROUND TRIP us", "round_trip_us")}},
          {"rails",
           "no rails",
           {plain("HOST", "host_id"), plain("MESH", "endpoint"), plain("RAIL", "detail"), plain("STATE", "state"),
            bytes("SENT", "tx_bytes"), plain("WRITES", "tx_writes"), plain("ARRIVALS", "rx_immediates"),
            plain("DUPLICATES", "duplicates"), plain("STRAYS", "strays")}}};
}

void print(const Listing& listing, const Json& json) {
  const Json entries = json.value(listing.key, Json::array());
  if (entries.empty()) {
    std::printf("%s\n", listing.none.c_str());
    return;
  }
  std::vector<std::string> titles;
  for (const Column& column : listing.columns) titles.push_back(column.title);
  std::vector<std::vector<std::string>> rows;
  for (const auto& entry : entries) {
    std::vector<std::string>& row = rows.emplace_back();
    for (const Column& column : listing.columns) row.push_back(column.cell(entry));
  }
  std::printf("%s", format_table(titles, rows).c_str());
}

const std::map<std::string, std::function<std::vector<Listing>()>>& listings() {
  static const std::map<std::string, std::function<std::vector<Listing>()>> all = {
      {"sessions", sessions}, {"groups", groups}, {"arenas", arenas}, {"rings", rings}, {"peers", peers}};
  return all;
}

int run(const Options& options, const std::string& what) {
  const auto answer = snapshot(options, what);
  if (!answer) return print_failure(options, answer.error());
  if (options.json) {
    print_json(*answer);
    return kGood;
  }
  bool first = true;
  for (const Listing& listing : listings().at(what)()) {
    if (!std::exchange(first, false)) std::printf("\n");
    print(listing, *answer);
  }
  return kGood;
}

}  // namespace

void add_list(CLI::App& app, Options& options) {
  const auto what = std::make_shared<std::string>();
  CLI::App* const command =
      add_daemon_command(app, options, "ls", "List sessions, groups, arenas, rings or peers",
                         "0 listed, even if there are none; 1 refused; 2 no daemon answers; 64 bad usage.",
                         [&options, what] { return run(options, *what); });
  command->add_option("what", *what, "sessions, groups, arenas, rings or peers")
      ->required()
      ->check(CLI::IsMember({"sessions", "groups", "arenas", "rings", "peers"}))
      ->type_name("");
}

}  // namespace railhead::epctl
