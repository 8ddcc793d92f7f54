/* SPDX-License-Identifier: Apache-2.0 */
/* doctor: findings about this machine, one after the other. */
#ifndef VETHGUARD_SRC_CLI_DOCTOR_DOCTOR_H
#define VETHGUARD_SRC_CLI_DOCTOR_DOCTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "vethguard/base/slice.h"

enum doctor_state { DOCTOR_OK, DOCTOR_NOTE, DOCTOR_BROKEN };

#define DOCTOR_TEXT_MAX 512
/* Locked memory that keeper and worker need for keys and credentials; with less they do not start
 * (measured: 800 KiB is enough for one credential, 796 is not). */
#define DOCTOR_MEMLOCK_LEAST (800u << 10)
#define DOCTOR_MEMLOCK_REMEDY                                               \
	"raise the limit of locked memory to 1024 KiB or more: memlock in " \
	"/etc/security/limits.conf, ulimit -l, or LimitMEMLOCK= of the service"

struct doctor_finding {
	const char *subject;          /* a word */
	enum doctor_state state;      /* BROKEN: `run` cannot work */
	char text[DOCTOR_TEXT_MAX];   /* the situation */
	char remedy[DOCTOR_TEXT_MAX]; /* what to do, or empty */
};

typedef void (*doctor_check)(struct doctor_finding *finding);
/* Ends with NULL. A check may leave the text empty if there is nothing to say. */
extern const doctor_check doctor_checks[];
/* Checks the configuration at path, and the network's proxy that it names. */
void doctor_egress(const char *path, struct doctor_finding *finding);
/* Checks the token that the configuration at path names for a CA's key. The finding has no text if
 * the configuration names none.
 */
void doctor_token(const char *path, struct doctor_finding *finding);

/* doctor --roles: asks each role how it is confined, and compares its answer with what the kernel
 * says about it and with what it should be. Asks the daemon on socket (NULL: on the default one, if
 * it exists and no policy is given); else starts a run of its own under this policy (NULL: one
 * that allows only one host). json: prints one JSON object. Returns the exit status: 0 all are
 * confined as they should be, 1 one is not or it cannot be found out. */
int doctor_roles(const char *policy, const char *socket, bool json);

/* doctor/attributes.c: the facts about one role. */
enum doctor_verdict {
	DOCTOR_AGREED,  /* the kernel says the same */
	DOCTOR_CLAIMED, /* the kernel does not tell, or not this user */
	DOCTOR_DIFFERS, /* the kernel says otherwise */
	DOCTOR_WEAK     /* weaker than a role has to be confined */
};

#define DOCTOR_VALUE_MAX 8192

struct doctor_fact {
	char name[32]; /* both escaped, because the words are those of a role, which may be
	                  compromised */
	char value[DOCTOR_VALUE_MAX];
	char kernel[128]; /* the kernel's value if it differs */
	enum doctor_verdict verdict;
};

/* Splits one line of jail_describe(), asks the kernel about process pid, and judges the line.
 * confined: a role, not the supervisor. proc: the directory to read ("/proc"). Returns false if
 * line is not such a line. */
bool doctor_fact_read(
        struct slice line, const char *proc, pid_t pid, bool confined, struct doctor_fact *fact);
/* The facts that each role has to report, from 0 on; NULL behind the last one. */
const char *doctor_fact_name(size_t i);
/* Judges a fact that the role did not report: it differs from what the kernel says, or is weak. */
void doctor_fact_unsaid(const char *name, const char *proc, pid_t pid, struct doctor_fact *fact);

/* Set state and text, or the remedy; too long texts are cut. */
void doctor_tell(struct doctor_finding *f, enum doctor_state state, const char *format, ...)
        __attribute__((format(printf, 3, 4)));
void doctor_remedy(struct doctor_finding *f, const char *remedy);

/* doctor/machine.c: checks with their input as arguments. f is empty before. release: from
 * uname(2); NULL: unknown. */
void doctor_kernel(struct doctor_finding *f, const char *release);
/* root: the directory that contains sys/module and lib/modules/RELEASE; "" for the machine's. */
void doctor_modules(struct doctor_finding *f, const char *root, const char *release);
/* abi: 0 if the kernel has no Landlock (landlock_create_ruleset(2)). */
void doctor_landlock(struct doctor_finding *f, int abi);
/* path: the kernel's list of seccomp actions (seccomp(2)). */
void doctor_seccomp(struct doctor_finding *f, const char *path);
/* Limits in bytes and in descriptors; the soft limits count. */
void doctor_limits(
        struct doctor_finding *f, const struct rlimit *memory, const struct rlimit *files);
/* path: the file that says whether the scheduler shares out by session (sched(7), autogroup). */
void doctor_shares(struct doctor_finding *f, const char *path);
/* error: the error of socket(2) with AF_VSOCK here, 0 if it works. */
void doctor_vsock(struct doctor_finding *f, int error);
/* path: a file in the format of resolv.conf(5). */
void doctor_resolver(struct doctor_finding *f, const char *path);

#endif
