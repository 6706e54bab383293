// Owners for libfabric's handles.
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>

#include <memory>

namespace railhead::fabric {

struct FidCloser {
  template <class T>
  void operator()(T* handle) const {
    fi_close(&handle->fid);
  }
};
template <class T>
using Fid = std::unique_ptr<T, FidCloser>;

struct InfoFree {
  void operator()(fi_info* info) const { fi_freeinfo(info); }
};
using Info = std::unique_ptr<fi_info, InfoFree>;

}  // namespace railhead::fabric
