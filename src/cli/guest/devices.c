/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes a /dev for the sandbox:
 *
 * - the devices that every program expects and that reach nothing
 * - the devices that the operator names
 * - pseudo-terminals and shared memory that nobody else has
 * - the terminal that vethguard was started from, under its name
 *
 * Device files do not work anywhere else: all other mounts are "nodev".
 *
 * The machine's devpts has other people's terminals, so the sandbox has an instance of its own. The
 * caller's terminal is attached over an entry with its number. That entry has to stay, so one
 * pseudo-terminal with that number stays open and unused.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cli/guest/mounts.h"
#include "cli/run/options.h"
#include "vethguard/base/linux.h"
#include "vethguard/base/log.h"

#define NODES_MAX (8 + 3 + RUN_DEVICES_MAX)
#define PTS "/dev/pts/"
#define PTS_NUMBER_MAX 255 /* of a terminal that keeps its name */

static const char *const usual[] = {
        "/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"};
static const char *const links[][2] = {{"/proc/self/fd", "/dev/fd"},
        {"/proc/self/fd/0", "/dev/stdin"}, {"/proc/self/fd/1", "/dev/stdout"},
        {"/proc/self/fd/2", "/dev/stderr"}, {"pts/ptmx", "/dev/ptmx"}};

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* Taken out of the machine's /dev before that is covered. */
struct node {
	char path[PATH_MAX];
	int tree;
	bool directory;
};

struct nodes {
	size_t count;
	struct node all[NODES_MAX];
};

static int take(struct nodes *nodes, const char *path)
{
	struct node *n = &nodes->all[nodes->count];
	struct stat st;

	if (stat(path, &st) != 0)
		return -errno;
	if (!S_ISCHR(st.st_mode) && !S_ISBLK(st.st_mode) && !S_ISDIR(st.st_mode))
		return -ENODEV;
	for (size_t i = 0; i < nodes->count; i++)
		if (strcmp(nodes->all[i].path, path) == 0)
			return 0;
	n->tree = open_tree(AT_FDCWD, path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);
	if (n->tree < 0)
		return -errno;
	snprintf(n->path, sizeof(n->path), "%s", path);
	n->directory = S_ISDIR(st.st_mode);
	nodes->count++;
	return 0;
}

static int take_all(const struct mounts *m, struct nodes *nodes, struct failure *failure)
{
	char name[PATH_MAX];
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < COUNT(usual); i++) {
		rc = take(nodes, usual[i]);
		if (rc == -ENOENT) /* a container without it */
			rc = 0;
		if (rc != 0)
			failure_set(failure, rc, "cannot take %s into the sandbox", usual[i]);
	}
	for (size_t i = 0; rc == 0 && i < m->plan->device_count; i++) {
		rc = take(nodes, m->plan->devices[i]);
		if (rc != 0)
			failure_set(failure, rc, "--device %s", m->plan->devices[i]);
	}
	for (int fd = 0; rc == 0 && fd < 3; fd++)
		if (isatty(fd) && ttyname_r(fd, name, sizeof(name)) == 0 &&
		        strncmp(name, "/dev/", 5) == 0)
			take(nodes, name); /* without it the terminal works but has no name */
	return rc;
}

static int make_folders(const char *path)
{
	char folder[PATH_MAX];

	for (const char *at = strchr(path + 5, '/'); at; at = strchr(at + 1, '/')) {
		snprintf(folder, sizeof(folder), "%.*s", (int)(at - path), path);
		if (mkdir(folder, 0755) != 0 && errno != EEXIST)
			return -errno;
	}
	return 0;
}

static int move(int tree, const char *path)
{
	return move_mount(tree, "", AT_FDCWD, path, MOVE_MOUNT_F_EMPTY_PATH) != 0 ? -errno : 0;
}

static int put(const struct node *n)
{
	int rc = make_folders(n->path), fd;

	if (rc != 0)
		return rc;
	if (n->directory) {
		if (mkdir(n->path, 0755) != 0)
			return -errno;
	} else {
		fd = open(n->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
		if (fd < 0)
			return -errno;
		close(fd);
	}
	return move(n->tree, n->path);
}

/* Returns an open pseudo-terminal with this number, or -errno. The kernel gives numbers from the
 * lowest on. */
static int open_numbered(unsigned wanted)
{
	int held[PTS_NUMBER_MAX + 1], fd = -ENOENT;
	size_t count = 0;
	unsigned number;

	if (wanted > PTS_NUMBER_MAX)
		return -ERANGE;
	while (fd < 0 && count < COUNT(held)) {
		int next = open(PTS "ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);

		if (next < 0 || ioctl(next, TIOCGPTN, &number) != 0)
			break;
		if (number == wanted)
			fd = next;
		else
			held[count++] = next;
	}
	while (count > 0)
		close(held[--count]);
	return fd;
}

static void put_terminal(struct mounts *m, const struct node *n)
{
	int pty = m->pty >= 0 ? -EBUSY /* one name for all three */
	                      : open_numbered((unsigned)atoi(n->path + strlen(PTS)));

	if (pty >= 0 && move(n->tree, n->path) == 0)
		m->pty = pty;
	else if (pty >= 0)
		close(pty);
	if (m->pty < 0)
		log_info("the terminal %s has no name inside", n->path);
}

static int mount_pts(const struct mounts *m)
{
	char options[96] = "newinstance,ptmxmode=0666,mode=0620";
	size_t n = strlen(options);
	struct stat st;

	/* If groups can be set, new terminals belong to the group of /dev/tty. */
	if (!m->plan->rootless && stat("/dev/tty", &st) == 0)
		snprintf(options + n, sizeof(options) - n, ",gid=%u", (unsigned)st.st_gid);
	if (mkdir("/dev/pts", 0755) != 0 ||
	        mount("devpts", "/dev/pts", "devpts", MS_NOSUID | MS_NOEXEC, options) != 0)
		return -errno;
	return 0;
}

static int mount_shm(void)
{
	if (mkdir("/dev/shm", 01777) != 0 ||
	        mount("vethguard", "/dev/shm", "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777") != 0)
		return -errno;
	return 0;
}

static int put_all(struct mounts *m, const struct nodes *nodes)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < nodes->count; i++)
		if (strncmp(nodes->all[i].path, PTS, strlen(PTS)) != 0)
			rc = put(&nodes->all[i]);
	if (rc == 0)
		rc = mount_pts(m);
	if (rc == 0)
		rc = mount_shm();
	for (size_t i = 0; rc == 0 && i < COUNT(links); i++)
		rc = symlink(links[i][0], links[i][1]) != 0 ? -errno : 0;
	for (size_t i = 0; rc == 0 && i < nodes->count; i++)
		if (strncmp(nodes->all[i].path, PTS, strlen(PTS)) == 0)
			put_terminal(m, &nodes->all[i]);
	return rc;
}

static int shut_others(void)
{
	struct mount_attr attr = {.attr_set = MOUNT_ATTR_NODEV};

	return mount_setattr(AT_FDCWD, "/", AT_RECURSIVE, &attr, sizeof(attr)) != 0 ? -errno : 0;
}

int devices_mounts(struct mounts *m, struct failure *failure)
{
	struct nodes *nodes = calloc(1, sizeof(*nodes));
	int rc = !nodes ? -ENOMEM : take_all(m, nodes, failure);

	if (rc == 0 && (rc = shut_others()) != 0)
		failure_set(failure, rc, "cannot shut the machine's device files");
	if (rc == 0 && mount("vethguard", "/dev", "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC,
	                       "mode=755,size=1m") != 0)
		rc = failure_set(failure, -errno, "cannot mount a tmpfs on /dev");
	if (rc == 0 && (rc = put_all(m, nodes)) != 0)
		failure_set(failure, rc, "cannot make the sandbox's /dev");
	for (size_t i = 0; nodes && i < nodes->count; i++)
		close(nodes->all[i].tree);
	free(nodes);
	return rc;
}
