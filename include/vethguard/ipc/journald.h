/* SPDX-License-Identifier: Apache-2.0 */
/*
 * journald: a program's own messages (vethguard/base/log.h) as entries of the system's journal, with fields to search
 * by: PRIORITY, SYSLOG_IDENTIFIER, MESSAGE and, where they are known, SANDBOX and ROLE. Its native protocol (
 * sd-journal's JOURNAL_NATIVE_PROTOCOL): one datagram to /run/systemd/journal/socket is one entry.
 *
 * A message never waits for the journal. What its socket does not take goes to stderr, which is the journal as well
 * by another way; what that does not take either is counted, and the next entry that gets through says how many there
 * were.
 */
#ifndef VETHGUARD_IPC_JOURNALD_H
#define VETHGUARD_IPC_JOURNALD_H

#include <stdbool.h>

#define JOURNALD_SOCKET "/run/systemd/journal/socket"

/* Sends messages there from now on where stderr is the journal's (JOURNAL_STREAM names its device and inode,
 * systemd.exec(5)); else leaves the log as it is. socket_path: JOURNALD_SOCKET. True: the log goes to the journal. */
bool journald_open(const char *socket_path);
/* Back to stderr. Harmless when it was not open. Programs keep it to their end. */
void journald_close(void);

#endif
