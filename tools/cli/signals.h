/* signals.h - handles signals so that the program leaves no unfinished files. */
#ifndef TOOLS_CLI_SIGNALS_H
#define TOOLS_CLI_SIGNALS_H

/* Install the handlers; main calls this once. A closed pipe and an exceeded file size limit become
 * errors of the write. SIGHUP, SIGINT and SIGTERM, unless they are ignored or caught later, delete
 * unfinished files and end the process. If another process truncates a mapped file, the process
 * ends with one line on stderr and status 3. */
void signals_init(void);

#endif
