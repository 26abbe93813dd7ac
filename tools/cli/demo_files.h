/* demo_files.h - where the program is, and from there the files of the demo pair. */
#ifndef TOOLS_CLI_DEMO_FILES_H
#define TOOLS_CLI_DEMO_FILES_H

/* Return the path of a file of the demo pair, e.g. "edge-0.5.gguf", or NULL if it is not found. It
 * is looked for at $MIZZLE_DEMO if that is set, else beside the program's sources
 * (build/../weights/milli) or where it is installed (PREFIX/share/mizzle/milli). The string is
 * static; the last four answers stay valid. Not safe for concurrent calls. */
const char *demo_files_path(const char *file);

/* argv[0], set by main: used where the system does not tell the program's own path. */
extern const char *demo_files_program;

#endif
