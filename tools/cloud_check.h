/* cloud_check.h - `mizzle cloud --check URL`: report what a server supports and how fast it is. */
#ifndef TOOLS_CLOUD_CHECK_H
#define TOOLS_CLOUD_CHECK_H

/* Ask the server at url, print the report to stdout, and return the exit status. */
int cloud_check(const char *url);

#endif
