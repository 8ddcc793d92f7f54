/* SPDX-License-Identifier: Apache-2.0 */
/*
 * journald: a program's own messages (vethguard/base/log.h) as entries of the system's journal, with searchable
 * fields: PRIORITY, SYSLOG_IDENTIFIER, MESSAGE and, if known, SANDBOX and ROLE. In the journal's native protocol
 * (systemd's JOURNAL_NATIVE_PROTOCOL), one datagram to /run/systemd/journal/socket is one entry.
 *
 * A message never waits for the journal. What its socket does not take goes to stderr, another way to the same
 * journal; what that does not take either is counted, and the next entry that gets through says how many there were.
 */
#ifndef VETHGUARD_IPC_JOURNALD_H
#define VETHGUARD_IPC_JOURNALD_H

#include <stdbool.h>

#define JOURNALD_SOCKET "/run/systemd/journal/socket"

/* Sends messages there from now on if stderr is the journal's (JOURNAL_STREAM names its device and inode,
 * systemd.exec(5)); otherwise the log stays as it is. socket_path: JOURNALD_SOCKET. Returns true if the log goes to
 * the journal. */
bool journald_open(const char *socket_path);
/* Returns to stderr. Allowed if it was not open. Programs keep it open to their end. */
void journald_close(void);

#endif
