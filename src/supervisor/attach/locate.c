/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the sandbox of a request: its network namespace, through the process or file that stands
 * for it and with the caller's rights, or an interface of the host. From then on nobody else can
 * attach it (target.c). Of a socket, only whether it can be made: the file itself is the target.
 */
#include <errno.h>
#include <sys/stat.h>

#include "vethguard/base/process.h"
#include "supervisor/attach/transaction.h"
#include "supervisor/attach/process.h"
#include "supervisor/os/local_file.h"

static bool settle_at(struct attach_transaction *t, const struct attach_target *target)
{
	return attachment_settle_at(t->attachment, target) == 0 ||
	       attach_transaction_refuse(t, ATTACH_FAILED, "no memory");
}

static bool take_netns(struct attach_transaction *t)
{
	const struct attachment *other;
	struct attach_target target;
	struct stat st;

	if (attach_netns_is_own(t->netns))
		return attach_transaction_refuse(t, ATTACH_INVALID,
		        "that is the host's own network namespace, which cannot be a sandbox");
	if (fstat(t->netns, &st) < 0)
		return attach_transaction_refuse(
		        t, ATTACH_FAILED, "the namespace: %s", strerror(errno));
	target = attach_target_of_netns(&st);
	other = attachments_at(t->all, &target);
	if (other)
		return attach_transaction_refuse(t, ATTACH_CONFLICT,
		        "that network namespace already belongs to sandbox %s: detach that sandbox "
		        "first",
		        other->record.name);
	return settle_at(t, &target);
}

static bool take_interface(struct attach_transaction *t)
{
	const struct attach_target target = attach_target_of_interface(t->interface);

	return settle_at(t, &target); /* free, see attach_transaction_check_room() */
}

static bool refuse_process(struct attach_transaction *t, int rc)
{
	const int pid = (int)t->request->pid;

	if (rc == -ESRCH)
		return attach_transaction_refuse(t, ATTACH_INVALID, "there is no process %d", pid);
	if (rc == -EACCES)
		return attach_transaction_refuse(t, ATTACH_INVALID,
		        "process %d belongs to another user: only that user or root may attach it",
		        pid);
	return attach_transaction_refuse(t, ATTACH_INVALID, "process %d: %s", pid, strerror(-rc));
}

/* Holds the process of the request. Returns 0 or -errno. */
static int hold_process(struct attach_transaction *t)
{
	const struct attach_request *r = t->request;
	struct attachment *a = t->attachment;

	a->pidfd = attach_process_open(r->pid, r->pid_start_time);
	if (a->pidfd < 0)
		return a->pidfd;
	a->record.pid = r->pid;
	return process_start_time(r->pid, &a->record.pid_start_time);
}

/* The process with which a namespace's sandbox ends. */
static bool find_lifetime(struct attach_transaction *t)
{
	int rc = hold_process(t);

	return rc == 0 || refuse_process(t, rc);
}

static bool find_process(struct attach_transaction *t)
{
	const struct attach_request *r = t->request;
	int rc = hold_process(t);

	if (!rc) {
		t->netns = attach_process_netns(&r->caller, r->pid, t->attachment->pidfd);
		rc = t->netns < 0 ? t->netns : 0;
	}
	return rc == 0 || refuse_process(t, rc);
}

static bool find_place(struct attach_transaction *t)
{
	char why[GATE_WHY_MAX];
	int rc = listen_socket_check(&t->request->listen, &t->request->caller, why, sizeof(why));

	return !rc || attach_transaction_refuse(
	                      t, rc == -EADDRINUSE ? ATTACH_CONFLICT : ATTACH_INVALID, "%s", why);
}

bool attach_transaction_find_target(struct attach_transaction *t)
{
	const struct attach_request *r = t->request;

	switch (r->kind) {
	case ATTACH_INTERFACE:
		t->divert = (struct gate_divert){.interface = t->interface,
		        .address4 = r->address4,
		        .address6 = r->address6,
		        .bits4 = r->bits4,
		        .bits6 = r->bits6};
		return take_interface(t);
	case ATTACH_PID:
		return find_process(t) && take_netns(t);
	case ATTACH_LISTEN:
		return find_place(t);
	case ATTACH_SESSION:
		return true;
	default:
		break;
	}
	if (r->pid && !find_lifetime(t))
		return false;
	t->netns = attach_netns_open(&r->caller, r->netns);
	if (t->netns == LOCAL_FILE_UNKNOWN)
		return attach_transaction_refuse(t, ATTACH_INVALID,
		        "%s may lie on a file system that does not answer: name the namespace as "
		        "/run/netns/NAME or "
		        "/proc/PID/ns/net",
		        r->netns);
	if (t->netns == -EINVAL)
		return attach_transaction_refuse(t, ATTACH_INVALID,
		        "%s is not a network namespace: those of 'ip netns' are /run/netns/NAME, a "
		        "process has /proc/PID/ns/net",
		        r->netns);
	if (t->netns < 0)
		return attach_transaction_refuse(
		        t, ATTACH_INVALID, "%s: %s", r->netns, strerror(-t->netns));
	return take_netns(t);
}
