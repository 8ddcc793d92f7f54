/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs that behave as a test wants. spawn_program() looks for programs beside the running one,
 * so the test puts links to itself there, and a link's name is what it is to be. The variable TERM,
 * which spawning passes on, says how
 * ("worker=crash keeper=mute").
 */
#ifndef TESTS_SUPERVISOR_FAKE_ROLE_H
#define TESTS_SUPERVISOR_FAKE_ROLE_H

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "vethguard/ipc/peer.h"

static uint8_t fake_in[MESSAGE_BYTES_MAX], fake_out[MESSAGE_BYTES_MAX];

/* The directory of the running program, with a slash. */
static inline void fake_directory(char out[PATH_MAX])
{
	ssize_t n = readlink("/proc/self/exe", out, PATH_MAX - 1);

	out[n > 0 ? n : 0] = 0;
	char *slash = strrchr(out, '/');
	if (slash)
		slash[1] = 0;
}

/*
 * Makes or removes one of these links. The tests of a folder run at the same time: a name that is
 * another one's would be taken away from it.
 */
static inline void fake_link(const char *name, bool make)
{
	char self[PATH_MAX], link[PATH_MAX + 64], old[PATH_MAX];

	fake_directory(self);
	snprintf(link, sizeof link, "%s%s", self, name);
	ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
	self[n > 0 ? n : 0] = 0;
	n = readlink(link, old, sizeof old - 1);
	old[n > 0 ? n : 0] = 0;
	if (n > 0 && strcmp(old, self) != 0) {
		fprintf(stderr, "%s is another test's: %s; each needs names of its own\n", link,
		        old);
		abort();
	}
	unlink(link);
	if (make && symlink(self, link) != 0) {
		perror(link);
		abort();
	}
}

static inline bool fake_is(const char *how)
{
	const char *modes = getenv("TERM");

	return modes && strstr(modes, how);
}

static inline void fake_say(enum message_type type, uint64_t id)
{
	ipc_send_blocking(IPC_SUPERVISOR_FD, fake_out,
	        message_empty(fake_out, sizeof fake_out, type, id), NULL, 0);
}

static inline void fake_say_text(enum message_type type, uint64_t id, const char *text)
{
	struct message_text m = {slice_from_string(text)};

	ipc_send_blocking(IPC_SUPERVISOR_FD, fake_out,
	        message_text_encode(fake_out, sizeof fake_out, type, id, &m), NULL, 0);
}

static inline void fake_die(int signal_number)
{
	signal(signal_number, SIG_DFL);
	raise(signal_number);
	_exit(99);
}

#endif
