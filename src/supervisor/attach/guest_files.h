/* SPDX-License-Identifier: Apache-2.0 */
/*
 * guest_files: name server and CA in the file system of a sandbox that somebody else made, a
 * container as a rule. Its files are hostile: links, FIFOs, devices, file systems that do not
 * answer, files as large as they like, all of them changing while one looks. So a child with few
 * rights does it, within a bound of time, and its report is what is known of it. What a process
 * of a user's has for its root directory is the user's choice, any directory of the host's, say: so
 * for a user it is done with that user's own rights, and in a process that has a user namespace
 * with those of its root.
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
#define GUEST_BUNDLE "/etc/ssl/certs/ca-certificates.crt" /* is there afterwards, whatever was */
#define GUEST_CA "/etc/ssl/certs/vethguard.pem"           /* the CA alone */
#define GUEST_RESOLV "/etc/resolv.conf"

struct guest_files_plan {
	pid_t pid;              /* a process in the sandbox; its root is the one that is meant */
	uint64_t start_time;    /* field 22 of /proc/PID/stat; 0: not compared */
	struct ip servers[2];   /* family 0: none */
	struct slice root_pem;  /* borrowed for the call */
	struct identity caller; /* root: the daemon's own few rights; else no others than these */
};

struct guest_files_report {
	const char *written; /* one path per line */
	const char *faults;  /* one per line: "/etc/resolv.conf: Read-only file system" */
};

struct guest_files;

/* Starts the child. done comes once, from the loop, and may free. 0 with *out, or -errno. */
int guest_files_write(struct loop *loop, const struct guest_files_plan *plan,
        void (*done)(void *context, const struct guest_files_report *report), void *context,
        struct guest_files **out);
/* Also while the child runs: it is killed, and done does not come. NULL is harmless. */
void guest_files_free(struct guest_files *files);

/* The child's work, here and now: lines "+PATH" and "-PATH: why" go to report. root: a directory,
 * the file system's root as the sandbox sees it (O_PATH will do). */
void guest_files_install(int root, const struct guest_files_plan *plan, int report);

#endif
