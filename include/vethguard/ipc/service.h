/* SPDX-License-Identifier: Apache-2.0 */
/*
 * service: tells a service manager the state of this process, by the protocol of sd_notify(3): one datagram of lines
 * "NAME=value" to the socket that NOTIFY_SOCKET names, a path or (first byte '@') an abstract name. It is no error if
 * nothing listens, or the manager does not take it in time: each call returns 0, or -errno for logging, and the
 * daemon goes on. -ENOTCONN: no manager asked to be told.
 */
#ifndef VETHGUARD_IPC_SERVICE_H
#define VETHGUARD_IPC_SERVICE_H

#include <stdint.h>
#include <sys/types.h>

#define SERVICE_STATUS_MAX 256 /* bytes of a status line; a longer one is cut */
#define SERVICE_DESCRIPTION_MAX 160
#define SERVICE_PATIENCE_MS 500 /* longest wait of a call for a manager whose queue is full */

/* Reads NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID and removes them from the environment, so that no child speaks
 * for this process. Returns 0, -ENOTCONN, or -EINVAL: an address of another kind. */
int service_open(void);
void service_close(void);
/* Writes what service_open() has found as one line for service_adopt() in another process that is about to be the
 * service; empty if no manager asked to be told. */
void service_describe(char out[SERVICE_DESCRIPTION_MAX]);
/* Instead of service_open(). Returns 0; -ENOTCONN: the line is empty; -EINVAL. */
int service_adopt(const char *line);
/* The service is ready: after the start, and after each reload. status: one line for people (`systemctl status`);
 * control bytes become '?'. */
int service_ready(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* A reload begins; service_ready() follows. */
int service_reloading(void);
int service_stopping(void);
/* Another process, which took over this one's work, is the service from now on. */
int service_main_pid(pid_t pid);
/* Returns how often, in milliseconds, service_watchdog() has to be called at least: half of what the manager grants;
 * 0: no watchdog. */
int64_t service_watchdog_ms(void);
int service_watchdog(void);

#endif
