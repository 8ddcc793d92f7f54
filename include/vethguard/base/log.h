/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log: a program's own messages to people, on stderr, one line each: "vethguard-worker: error: ...".
 * Not the audit log. A message never holds a credential, and holds bytes from a sandbox only through slice_escape().
 */
#ifndef VETHGUARD_BASE_LOG_H
#define VETHGUARD_BASE_LOG_H

enum log_level { LOG_LEVEL_ERROR, LOG_LEVEL_WARN, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG };

/* program: a string literal put before every line. level: the last level that is written. */
void log_open(const char *program, enum log_level level);
enum log_level log_level(void);
void log_error(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_warn(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_info(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_debug(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Writes the message as an error and exits with status: only before a program's loop starts. */
void die(int status, const char *format, ...) __attribute__((format(printf, 2, 3), noreturn));

#endif
