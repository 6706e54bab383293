// Calls of one session, and of its ranks in their groups.
#pragma once

#include <memory>

#include "daemon/control/rpc_server.hpp"

namespace railhead::daemon {

schema::Session::Client make_session_server(ControlPlane& plane, std::shared_ptr<Session> session);

}  // namespace railhead::daemon
