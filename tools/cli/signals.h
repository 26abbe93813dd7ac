/* signals.h - what the program does about signals, so that it never leaves unfinished files. */
#ifndef TOOLS_CLI_SIGNALS_H
#define TOOLS_CLI_SIGNALS_H

/* For main(), once. A closed pipe and a full quota become errors of the write. SIGHUP, SIGINT and
 * SIGTERM, unless they are ignored or caught later, delete unfinished files before they end the
 * process. A mapped file that another process cuts short ends it with one line and status 3. */
void signals_init(void);

#endif
