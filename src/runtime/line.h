/* SPDX-License-Identifier: Apache-2.0 */
/*
 * line: the command line of an OCI runtime, as runc, crun and runsc take it. Only what has to be
 * known is read; the words go to the real runtime unchanged, without those that are
 * vethguard-runtime's own.
 */
#ifndef VETHGUARD_SRC_RUNTIME_LINE_H
#define VETHGUARD_SRC_RUNTIME_LINE_H

#include <stddef.h>

#include "runtime/fault.h"

#define LINE_WORDS_MAX 512 /* runsc has some 90 global options */
#define LINE_ID_MAX 1024   /* bytes; runc's own bound */

enum verb {
	VERB_PASS, /* goes to the real runtime */
	VERB_HELP, /* our own --help, or no command at all */
	VERB_HOOK,
	VERB_CREATE,
	VERB_RUN,
	VERB_START,
	VERB_DELETE,
	VERB_EXEC,
	VERB_RESTORE,
};

struct line {
	enum verb verb;
	char *words[LINE_WORDS_MAX +
	            1];        /* for the real runtime: borrowed, ends with NULL; [0] is its name */
	size_t count, globals; /* globals: words[1] to words[globals - 1] come before the command */
	const char *config;    /* --vethguard-config */
	const char *root, *log, *log_format, *network; /* global options; NULL: not given */
	const char *bundle, *pid_file, *other_config;  /* of create, run and restore */
	const char *id;
	size_t process_at; /* exec: words[process_at] is the option's value; 0: none, or joined to
	                      its option */
	bool detach, force, by_pattern, flag_override;
};

/* Reads argv (of main()). Returns false with a fault: an unknown command, or an unknown option
 * where it would matter. */
bool line_read(struct line *line, int argc, char **argv, struct fault *fault);

#endif
