/* cloud_check.h - `mizzle cloud --check URL`: what a server speaks, and how fast. */
#ifndef TOOLS_CLOUD_CHECK_H
#define TOOLS_CLOUD_CHECK_H

/* Prints to stdout; an exit status. */
int cloud_check(const char *url);

#endif
