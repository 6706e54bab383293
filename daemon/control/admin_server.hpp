// Calls of operators.
#pragma once

#include "daemon/control/rpc_server.hpp"

namespace railhead::daemon {

schema::Admin::Client make_admin_server(ControlPlane& plane);

}  // namespace railhead::daemon
