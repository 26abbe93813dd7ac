/* demo_files.h - finds the files of the demo pair. */
#ifndef TOOLS_CLI_DEMO_FILES_H
#define TOOLS_CLI_DEMO_FILES_H

/* Return the path of a file of the demo pair, e.g. "edge-0.5.gguf", or of a folder beside it, e.g.
 * "../routers", which comes with the program, too; NULL if it cannot be read.
 * MIZZLE_DEMO names the folder if it is set. Otherwise the file is searched relative to the
 * program: in the sources (weights/milli) and where it is installed (PREFIX/share/mizzle/milli).
 * The string is static and stays valid until four others were asked for. Not thread-safe. */
const char *demo_files_path(const char *file);

/* argv[0], set by main for systems that do not tell a program its own path. */
extern const char *demo_files_program;

#endif
