/* SPDX-License-Identifier: Apache-2.0 */
/*
 * service: what a service manager is told of this process's state, by the protocol of sd_notify(3): one datagram of
 * lines "NAME=value" to the socket that NOTIFY_SOCKET names, a path or (first byte '@') an abstract name. Nobody who
 * listens, or a manager that does not take it in time, is no error: each call returns 0, or -errno for whoever wants
 * to say so, and the daemon goes on. -ENOTCONN: no manager asked to be told.
 */
#ifndef VETHGUARD_IPC_SERVICE_H
#define VETHGUARD_IPC_SERVICE_H

#include <stdint.h>
#include <sys/types.h>

#define SERVICE_STATUS_MAX 256  /* bytes of a status line; a longer one is cut */
#define SERVICE_DESCRIPTION_MAX 160
#define SERVICE_PATIENCE_MS 500 /* the longest that a call waits for a manager whose queue is full */

/* Reads NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID and takes them out of the environment, so that no child
 * speaks for this process. 0, -ENOTCONN, -EINVAL: an address of another kind. */
int service_open(void);
void service_close(void);
/* What service_open() has found, as one line for another process that is about to be the service, which gives it to
 * service_adopt(); empty where nobody asked to be told. */
void service_describe(char out[SERVICE_DESCRIPTION_MAX]);
/* In place of service_open(). 0; -ENOTCONN: the line is empty; -EINVAL. */
int service_adopt(const char *line);
/* Everything is as it should be: after the start, and after each reload. status: one line for people
 * (`systemctl status`); control bytes become '?'. */
int service_ready(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* A reload begins; service_ready() follows. */
int service_reloading(void);
int service_stopping(void);
/* Another process, which took this one's work over, is the service from now on. */
int service_main_pid(pid_t pid);
/* How often service_watchdog() has to be called at least, in milliseconds; 0: nobody watches. Half of what the manager
 * grants. */
int64_t service_watchdog_ms(void);
int service_watchdog(void);

#endif
