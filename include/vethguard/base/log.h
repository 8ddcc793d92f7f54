/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log: a program's own messages to people, on stderr, one line each: "vethguard-worker: error: ...", or wherever a
 * sink puts them (vethguard/ipc/journald.h). Not the audit log. A message never holds a credential, and holds bytes
 * from a sandbox only through slice_escape().
 */
#ifndef VETHGUARD_BASE_LOG_H
#define VETHGUARD_BASE_LOG_H

#include <stddef.h>

enum log_level { LOG_LEVEL_ERROR, LOG_LEVEL_WARN, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG };

/* What a message is about, for whoever keeps fields apart. Each may be NULL. */
struct log_subject {
	const char *sandbox; /* its name */
	const char *role;    /* the program that speaks or is spoken of, "vethguard-worker" */
};

/* One message as a sink gets it. Lives as long as the call. */
struct log_record {
	enum log_level level;
	const char *program;
	struct log_subject subject;
	const char *text; /* n bytes of one line without control bytes and without program and level */
	size_t n;
};
typedef void log_sink(const struct log_record *record);

/* program: a string literal put before every line. level: the last level that is written. */
void log_open(const char *program, enum log_level level);
enum log_level log_level(void);
/* The same for a program that the supervisor starts with no argument, or with LOG_DEBUG_ARGUMENT where it writes at level
 * debug itself; such a one writes warnings else. Any other argument ends it with status. */
#define LOG_DEBUG_ARGUMENT "--debug"
void log_open_role(const char *program, int argc, char *const *argv, int status);
/* Every message goes to sink from now on; NULL: to stderr. A sink may not log and may not block. */
void log_to(log_sink *sink);
/* As log_error() and the others below, about a sandbox; on stderr its name stands before the text. */
void log_sandbox(enum log_level level, const char *sandbox, const char *format, ...)
        __attribute__((format(printf, 3, 4)));
/* A line that another program wrote, n bytes without control bytes: on stderr as it is, with "program: " before it
 * where it does not begin so. A sink gets it with the level that the line names, else as a warning. The log's own
 * level does not hold for it: whoever wrote it has one. The bytes written. */
size_t log_relay(const char *program, const struct log_subject *subject, const char *line, size_t n);
void log_error(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_warn(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_info(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_debug(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Writes the message as an error and exits with status: only before a program's loop starts. */
void die(int status, const char *format, ...) __attribute__((format(printf, 2, 3), noreturn));

#endif
