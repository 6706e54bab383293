#include <railhead/railhead.h>
#include <stdio.h>

int main(void) {
  puts(rh_status_name(0));
  return 0;
}
