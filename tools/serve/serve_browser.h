/* serve_browser.h - opens the page in the user's browser. */
#ifndef TOOLS_SERVE_SERVE_BROWSER_H
#define TOOLS_SERVE_SERVE_BROWSER_H

/* Start a process that will open the browser, before this one gives up the right to start
 * programs. Return where to write the URL, or -1. */
int serve_browser_prepare(void);
/* Let the process open the URL, or say on stderr that there is no browser; NULL: end it. to is
 * closed; -1 is fine. */
void serve_browser_open(int to, const char *url);

#endif
