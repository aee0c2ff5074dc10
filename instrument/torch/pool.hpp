#pragma once

namespace mp::twin {

// Memory of the twin: what its tensors gave back is handed out again, hot and without page faults. The program's own
// tensors pass by. Called once, before the first op of the twin.
void install_pool();

// A step is over: memory that no tensor of the twin asked for in it goes back to the system.
void trim_pool();

}  // namespace mp::twin
