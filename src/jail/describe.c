/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How this process is confined, in its own words. A jailed process can ask the kernel little, so
 * results that the stages read back are reported from memory. What can still be tried is tried: the
 * process's descriptors, and a connection that Landlock has to refuse. The reader compares the text
 * with what the kernel says about this process from outside (`vethguard doctor --roles`).
 */
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "jail/jail_state.h"
#include "vethguard/base/buf.h"

static void describe_ids(struct buf *b)
{
	const struct jail_facts *f = &jail_state.facts;

	buf_printf(b, "uid: %u\ngid: %u\ngroups: %d\n", (unsigned)f->ids.uid, (unsigned)f->ids.gid,
	        f->groups);
	buf_printf(b,
	        "cap_inheritable: %016llx\ncap_permitted: %016llx\ncap_effective: %016llx\n"
	        "cap_bounding: %016llx\ncap_ambient: %016llx\n",
	        (unsigned long long)f->capabilities.inheritable,
	        (unsigned long long)f->capabilities.permitted,
	        (unsigned long long)f->capabilities.effective, (unsigned long long)f->bounding,
	        (unsigned long long)f->ambient);
	buf_printf(b, "no_new_privs: %d\ndumpable: %d\ncore_limit: %llu\n", f->no_new_privs,
	        f->dumpable, (unsigned long long)f->core_limit);
}

static void describe_namespaces(struct buf *b)
{
	for (size_t i = 0; i < JAIL_NAMESPACES; i++)
		buf_printf(b, "ns_%s: %llu\n", jail_namespace_name(i),
		        (unsigned long long)jail_state.facts.namespaces[i]);
	buf_printf(b, "root: %s\n", jail_state.empty_root ? "empty, read-only" : "the system's");
}

static void describe_seccomp(struct buf *b)
{
	bool own = jail_state.calls_allowed > 0;

	buf_printf(b, "seccomp: %s\nseccomp_filters: %u\nseccomp_calls: %u\n",
	        own || jail_state.facts.filters > 0 ? "filter" : "none",
	        jail_state.facts.filters + own, jail_state.calls_allowed);
}

static void describe_landlock(struct buf *b)
{
	const struct jail_state *s = &jail_state;

	buf_printf(b, "landlock_abi: %d\n", s->landlock_abi);
	if (s->landlock_abi == 0)
		return;
	buf_printf(b, "landlock_paths: none\nlandlock_bind: %s\nlandlock_connect:",
	        s->landlock_abi < 4 ? "any"
	        : s->landlock_binds ? "ephemeral"
	                            : "none");
	if (!s->landlock_ports)
		buf_printf(b, " any");
	else if (s->port_count == 0)
		buf_printf(b, " none");
	for (size_t i = 0; s->landlock_ports && i < s->port_count; i++)
		buf_printf(b, " %u", s->ports[i]);
	buf_printf(b, "\n");
	if (s->landlock_ports && s->probe)
		s->probe(b);
}

enum kind { KIND_SOCKET, KIND_PIPE, KIND_FILE, KIND_DEVICE, KIND_OTHER, KINDS };

/* Eventfds, epoll and timers have no type in st_mode. */
static enum kind kind_of(const struct stat *st)
{
	switch (st->st_mode & S_IFMT) {
	case S_IFSOCK:
		return KIND_SOCKET;
	case S_IFIFO:
		return KIND_PIPE;
	case S_IFREG:
	case S_IFDIR:
		return KIND_FILE;
	case S_IFCHR:
		return KIND_DEVICE;
	default:
		return KIND_OTHER;
	}
}

#define LOOK_AT 512 /* descriptors at a time */

/* Finds which of these descriptors are open, in one call instead of one for each of the tens of
 * thousands that this process may have. Descriptors that can be neither read nor written (O_PATH)
 * are missed; a role has none. */
static void look(unsigned first, unsigned count, struct pollfd out[LOOK_AT])
{
	for (unsigned i = 0; i < count; i++)
		out[i] = (struct pollfd){.fd = (int)(first + i)};
	if (!jail_state.dropped || poll(out, count, 0) < 0)
		for (unsigned i = 0; i < count; i++)
			out[i].revents = 0;
}

static void describe_descriptors(struct buf *b)
{
	unsigned counts[KINDS] = {0}, all = 0, max = jail_state.facts.files_max;
	struct pollfd fds[LOOK_AT];
	struct stat st;

	for (unsigned fd = 0; fd < max; fd++) {
		if (fd % LOOK_AT == 0)
			look(fd, max - fd < LOOK_AT ? max - fd : LOOK_AT, fds);
		if (!(fds[fd % LOOK_AT].revents & POLLNVAL) && fstat((int)fd, &st) == 0) {
			counts[kind_of(&st)]++;
			all++;
		}
	}
	buf_printf(b,
	        "descriptors: %u\nfd_socket: %u\nfd_pipe: %u\nfd_file: %u\nfd_device: %u\nfd_anon: "
	        "%u\n",
	        all, counts[KIND_SOCKET], counts[KIND_PIPE], counts[KIND_FILE], counts[KIND_DEVICE],
	        counts[KIND_OTHER]);
}

void jail_describe(char *out, size_t out_size)
{
	struct buf b;
	size_t n;

	if (!jail_state.dropped)
		jail_read_facts();
	buf_init(&b, JAIL_TEXT_MAX);
	describe_ids(&b);
	describe_namespaces(&b);
	describe_seccomp(&b);
	describe_landlock(&b);
	describe_descriptors(&b);
	n = b.len < out_size ? b.len : out_size - 1;
	if (n > 0)
		memcpy(out, buf_bytes(&b), n);
	out[n] = '\0';
	buf_fini(&b);
}
