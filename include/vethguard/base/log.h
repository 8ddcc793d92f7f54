/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log: a program's own messages to people, one line each: "vethguard-worker: error: ...", on stderr or wherever a
 * sink puts them (vethguard/ipc/journald.h). Not the audit log. A message never contains a credential, and contains
 * bytes from a sandbox only through slice_escape().
 */
#ifndef VETHGUARD_BASE_LOG_H
#define VETHGUARD_BASE_LOG_H

#include <stddef.h>

enum log_level { LOG_LEVEL_ERROR, LOG_LEVEL_WARN, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG };

/* What a message is about, for sinks with separate fields. Each may be NULL. */
struct log_subject {
	const char *sandbox; /* its name */
	const char *role;    /* the program that writes the message or that it is about: "vethguard-worker" */
};

/* One message for a sink. Valid during the call. */
struct log_record {
	enum log_level level;
	const char *program;
	struct log_subject subject;
	const char *text; /* n bytes of one line, without control bytes, program and level */
	size_t n;
};
typedef void log_sink(const struct log_record *record);

/* program: a string literal put before every line. level: the least severe level that is written. */
void log_open(const char *program, enum log_level level);
enum log_level log_level(void);
/* log_open() for a program that the supervisor starts: with LOG_DEBUG_ARGUMENT if the supervisor itself logs at level
 * debug, else without arguments, and then the level is warning. Any other argument ends the program with status. */
#define LOG_DEBUG_ARGUMENT "--debug"
void log_open_role(const char *program, int argc, char *const *argv, int status);
/* Sends every message to sink from now on; NULL: to stderr. A sink may not log and may not block. */
void log_to(log_sink *sink);
/* As log_error() and the others below, about a sandbox; on stderr the sandbox's name stands before the text. */
void log_sandbox(enum log_level level, const char *sandbox, const char *format, ...)
        __attribute__((format(printf, 3, 4)));
/* Relays a line that another program wrote, n bytes without control bytes. On stderr it is written unchanged, after
 * "program: " unless it begins like that. A sink gets it with the level that the line names, or as a warning. The
 * level of this log does not apply, because the other program has its own. Returns the number of bytes written. */
size_t log_relay(const char *program, const struct log_subject *subject, const char *line, size_t n);
void log_error(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_warn(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_info(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_debug(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Logs the message as an error and exits with status. Only before a program's loop starts. */
void die(int status, const char *format, ...) __attribute__((format(printf, 2, 3), noreturn));

#endif
