#include <cstdio>
#include <railhead/railhead.hpp>

int main() {
  std::puts(rh_status_name(rh_status{}));
}
