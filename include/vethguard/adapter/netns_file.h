/* SPDX-License-Identifier: Apache-2.0 */
/* netns_file: a network namespace with a name, as ip-netns(8) makes them: a file to which the namespace is bound. */
#ifndef VETHGUARD_ADAPTER_NETNS_FILE_H
#define VETHGUARD_ADAPTER_NETNS_FILE_H

#include <limits.h>

#define NETNS_FILE_DIRECTORY "/run/netns" /* the one of ip-netns(8) */

/* Makes a namespace whose loopback is up, and binds it to path, which must not exist; the directory is made if it is
 * missing. Needs CAP_SYS_ADMIN. Returns 0 or -errno, and then nothing is left. */
int netns_file_make(const char *path);
/* Takes the file away. The namespace lives on as long as a process or another file holds it. A file that is not there
 * is no failure. Returns 0 or -errno. */
int netns_file_remove(const char *path);

#endif
