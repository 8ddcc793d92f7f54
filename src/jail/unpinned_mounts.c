/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes a mount namespace without pins (spawn_unpinned_mounts()). A thread makes it, with a root
 * and mounts of its own from its first call on. The namespace lives as long as its descriptor and
 * the processes in it.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vethguard/jail/spawn.h"

#define PIN_TYPE "nsfs"
#define OCTAL_DIGITS 3

/* Decodes a path of proc_pid_mountinfo(5), which writes blanks and backslashes as three octal
 * digits. */
static void unescape(char *text)
{
	char *out = text;

	while (*text) {
		char digits[OCTAL_DIGITS + 1] = "", *end = digits;

		if (*text == '\\')
			snprintf(digits, sizeof(digits), "%.3s", text + 1);
		long byte = strtol(digits, &end, 8);
		if (end == digits + OCTAL_DIGITS) {
			*out++ = (char)byte;
			text += 1 + OCTAL_DIGITS;
		} else {
			*out++ = *text++;
		}
	}
	*out = '\0';
}

/* In "36 35 98:0 /root /mount/point options [fields] - type source ...", returns the fifth field if
 * the type is that of a pin, else NULL. */
static char *pin_of(char *line)
{
	char *separator = strstr(line, " - "), *field = line;

	if (!separator || strncmp(separator + 3, PIN_TYPE " ", sizeof(PIN_TYPE)) != 0)
		return NULL;
	for (int i = 0; i < 4 && field; i++) {
		field = strchr(field, ' ');
		field += field != NULL;
	}
	if (!field)
		return NULL;
	field[strcspn(field, " ")] = '\0';
	unescape(field);
	return field;
}

/* Reads all lines before it unmounts anything, because the file changes with the mounts. */
static int detach_pins(void)
{
	FILE *in = fopen("/proc/thread-self/mountinfo", "re"), *copy = tmpfile();
	char *line = NULL, *pin;
	size_t size = 0;
	int rc = in && copy ? 0 : -EIO;

	while (!rc && getline(&line, &size, in) >= 0)
		if (fputs(line, copy) < 0)
			rc = -EIO;
	if (copy)
		rewind(copy);
	while (!rc && getline(&line, &size, copy) >= 0) {
		pin = pin_of(line);
		if (pin)
			umount2(pin, MNT_DETACH | UMOUNT_NOFOLLOW);
	}
	free(line);
	if (in)
		fclose(in);
	if (copy)
		fclose(copy);
	return rc;
}

static bool same_root(const struct stat *before)
{
	struct stat now;

	return stat("/", &now) == 0 && now.st_dev == before->st_dev && now.st_ino == before->st_ino;
}

static int make_unpinned(void)
{
	struct stat before;
	int fd, rc = 0;

	if (stat("/", &before) != 0 || unshare(CLONE_NEWNS) != 0)
		return -errno;
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0)
		return -errno;
	fd = open("/proc/thread-self/ns/mnt", O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	rc = detach_pins();
	if (!rc && setns(fd, CLONE_NEWNS) != 0) /* as every process that starts there does */
		rc = -errno;
	if (!rc && !same_root(&before))
		rc = -EXDEV;
	if (!rc)
		return fd;
	close(fd);
	return rc;
}

static void *in_thread(void *context)
{
	*(int *)context = make_unpinned();
	return NULL;
}

int spawn_unpinned_mounts(void)
{
	pthread_t thread;
	int result = -EINVAL, rc = pthread_create(&thread, NULL, in_thread, &result);

	if (rc)
		return -rc;
	pthread_join(thread, NULL);
	return result;
}
