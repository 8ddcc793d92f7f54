/* SPDX-License-Identifier: Apache-2.0 */
/*
 * guest_files: writes name server and CA into the file system of a sandbox made by others, usually
 * a container. Its files are hostile: links, FIFOs, devices, file systems that do not answer, files
 * of any size, all of them changing meanwhile. So a child with few rights does it, within a time
 * limit, and its report is all that is known of the result. A user chooses the root directory of
 * the user's processes, for example any directory of the host: so for a user the child has that
 * user's own rights, and for root, in a process with a user namespace, those of that namespace's
 * root.
 *
 * guest_files_write.c is the child's part: guest_files_install().
 */
#ifndef VETHGUARD_SRC_SUPERVISOR_ATTACH_GUEST_FILES_H
#define VETHGUARD_SRC_SUPERVISOR_ATTACH_GUEST_FILES_H

#include "vethguard/base/ip.h"
#include "vethguard/loop/loop.h"
#include "supervisor/os/identity.h"

#define GUEST_FILES_MS 5000                               /* for the child */
#define GUEST_FILE_MAX (8u << 20)                         /* bytes of a bundle that is read */
#define GUEST_REPORT_MAX (16u << 10)                      /* bytes of the report */
#define GUEST_BUNDLE "/etc/ssl/certs/ca-certificates.crt" /* exists afterwards in any case */
#define GUEST_CA "/etc/ssl/certs/vethguard.pem"           /* the CA alone */
#define GUEST_RESOLV "/etc/resolv.conf"

struct guest_files_plan {
	pid_t pid;              /* a process in the sandbox; its root directory is used */
	uint64_t start_time;    /* field 22 of /proc/PID/stat; 0: not compared */
	struct ip servers[2];   /* family 0: none */
	struct slice root_pem;  /* borrowed for the call */
	struct identity caller; /* root: the daemon's own few rights; else only this user's */
};

struct guest_files_report {
	const char *written; /* one path per line */
	const char *faults;  /* one per line: "/etc/resolv.conf: Read-only file system" */
};

struct guest_files;

/* Starts the child. done is called once, from the loop, and may free. Returns 0 with *out, or
 * -errno. */
int guest_files_write(struct loop *loop, const struct guest_files_plan *plan,
        void (*done)(void *context, const struct guest_files_report *report), void *context,
        struct guest_files **out);
/* If the child still runs, it is killed, and done is not called. NULL is allowed. */
void guest_files_free(struct guest_files *files);

/* The child's work, executed in this process: writes lines "+PATH" and "-PATH: why" to report.
 * root: the root directory as the sandbox sees it (O_PATH suffices). */
void guest_files_install(int root, const struct guest_files_plan *plan, int report);

#endif
