/* sandbox.h - takes rights away from this process that a server does not need. */
#ifndef TOOLS_SERVE_SANDBOX_H
#define TOOLS_SERVE_SANDBOX_H

#include <stdbool.h>

/* From now on: no core dumps; on Linux nothing that this process starts gets more rights than it
 * has; and, if the kernel has Landlock, no file can be written, made, removed or executed, except
 * that files in these folders (NULL-terminated) can be written, made and removed. Files that are
 * open stay usable. To be called while there is one thread: threads that exist are not restricted.
 * Returns true if Landlock is in force. */
bool sandbox_enter(const char *const *folders);

#endif
