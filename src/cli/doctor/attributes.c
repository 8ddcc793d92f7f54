/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compares what a role says of its confinement, line by line, with what the kernel says of that
 * process in /proc. Landlock's rules cannot be read back from a kernel, so for them the role's own
 * connection attempt counts.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cli/doctor/doctor.h"

struct process {
	const char *proc;
	pid_t pid;
};

static int open_of(const struct process *p, const char *name)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%d/%s", p->proc, (int)p->pid, name);
	return open(path, O_RDONLY | O_CLOEXEC);
}

/* Reads the first bytes of a file of proc(5); the rest is not needed. */
static bool read_of(const struct process *p, const char *name, char *out, size_t size)
{
	int fd = open_of(p, name);
	ssize_t n = fd < 0 ? -1 : read(fd, out, size - 1);

	if (fd >= 0)
		close(fd);
	out[n > 0 ? n : 0] = '\0';
	return n > 0;
}

/* Copies the rest of the line that begins with key, without the separators around it. */
static bool field(
        const struct process *p, const char *file, const char *key, char *out, size_t size)
{
	char text[8192];
	const char *at;

	if (!read_of(p, file, text, sizeof(text)) || !(at = strstr(text, key)))
		return false;
	at += strlen(key);
	at += strspn(at, " \t:");
	snprintf(out, size, "%.*s", (int)strcspn(at, "\n"), at);
	return true;
}

/* One number if the real, effective, saved and file system ids are equal. */
static bool say_id(const struct process *p, const char *key, char *out, size_t size)
{
	char text[128];
	unsigned ids[4];

	if (!field(p, "status", key, text, sizeof(text)) ||
	        sscanf(text, "%u %u %u %u", &ids[0], &ids[1], &ids[2], &ids[3]) != 4)
		return false;
	if (ids[0] == ids[1] && ids[1] == ids[2] && ids[2] == ids[3])
		snprintf(out, size, "%u", ids[0]);
	else
		snprintf(out, size, "%s", text);
	return true;
}

static bool say_groups(const struct process *p, const char *key, char *out, size_t size)
{
	char text[4096];
	unsigned count = 0;

	if (!field(p, "status", key, text, sizeof(text)))
		return false;
	for (char *word = strtok(text, " "); word; word = strtok(NULL, " "))
		count++;
	snprintf(out, size, "%u", count);
	return true;
}

static bool say_status(const struct process *p, const char *key, char *out, size_t size)
{
	return field(p, "status", key, out, size);
}

static bool say_seccomp(const struct process *p, const char *key, char *out, size_t size)
{
	char text[64];

	if (!field(p, "status", key, text, sizeof(text)))
		return false;
	snprintf(out, size, "%s",
	        strcmp(text, "2") == 0   ? "filter"
	        : strcmp(text, "0") == 0 ? "none"
	                                 : text);
	return true;
}

static bool say_core(const struct process *p, const char *key, char *out, size_t size)
{
	char text[128], soft[32];

	if (!field(p, "limits", key, text, sizeof(text)) || sscanf(text, "%31s", soft) != 1)
		return false;
	snprintf(out, size, "%s", soft);
	return true;
}

static bool say_namespace(const struct process *p, const char *key, char *out, size_t size)
{
	char path[256];
	struct stat st;

	snprintf(path, sizeof(path), "%s/%d/ns/%s", p->proc, (int)p->pid, key);
	if (stat(path, &st) != 0)
		return false;
	snprintf(out, size, "%llu", (unsigned long long)st.st_ino);
	return true;
}

/* The root is empty if there is one mount, read-only, with nothing in it. */
static bool say_root(const struct process *p, const char *key, char *out, size_t size)
{
	char mounts[4096], *first_end;
	struct dirent *entry;
	bool empty = true;
	int fd = open_of(p, key);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);

	if (!dir) {
		if (fd >= 0)
			close(fd);
		return false;
	}
	while ((entry = readdir(dir)) != NULL)
		empty = empty &&
		        (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0);
	closedir(dir);
	if (!read_of(p, "mountinfo", mounts, sizeof(mounts)))
		return false;
	first_end = strchr(mounts, '\n');
	empty = empty && first_end && first_end[1] == '\0' && strstr(mounts, " / / ro,");
	snprintf(out, size, "%s", empty ? "empty, read-only" : "the system's");
	return true;
}

/* Counts the descriptors whose links begin with key; NULL: all of them. */
static bool say_descriptors(const struct process *p, const char *key, char *out, size_t size)
{
	int fd = open_of(p, "fd");
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;
	unsigned count = 0;

	if (!dir) {
		if (fd >= 0)
			close(fd);
		return false;
	}
	while ((entry = readdir(dir)) != NULL) {
		char target[256];
		ssize_t n = readlinkat(dirfd(dir), entry->d_name, target, sizeof(target) - 1);

		if (n < 0)
			continue;
		target[n] = '\0';
		count += !key || strncmp(target, key, strlen(key)) == 0;
	}
	closedir(dir);
	snprintf(out, size, "%u", count);
	return true;
}

/* Counts all other descriptors: memory, logs, a namespace. */
static bool say_files(const struct process *p, const char *key, char *out, size_t size)
{
	static const char *const others[] = {"socket:[", "pipe:[", "/dev/", "anon_inode:"};
	char text[32];
	long count;

	if (!say_descriptors(p, key, text, sizeof(text)))
		return false;
	count = strtol(text, NULL, 10);
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (say_descriptors(p, others[i], text, sizeof(text)))
			count -= strtol(text, NULL, 10);
	snprintf(out, size, "%ld", count);
	return true;
}

/* What a role has to say of itself. wanted NULL: anything. */
struct known {
	const char *name;
	bool (*say)(const struct process *p, const char *key, char *out, size_t size);
	const char *key;
	const char *wanted;
};

#define LOOKS 5 /* at what the kernel says */
#define NO_CAPABILITY "0000000000000000"

static const struct known known[] = {
        {"uid", say_id, "Uid:", NULL},
        {"gid", say_id, "Gid:", NULL},
        {"groups", say_groups, "Groups:", NULL},
        {"cap_inheritable", say_status, "CapInh:", NO_CAPABILITY},
        {"cap_permitted", say_status, "CapPrm:", NO_CAPABILITY},
        {"cap_effective", say_status, "CapEff:", NO_CAPABILITY},
        {"cap_bounding", say_status, "CapBnd:", NO_CAPABILITY},
        {"cap_ambient", say_status, "CapAmb:", NO_CAPABILITY},
        {"no_new_privs", say_status, "NoNewPrivs:", "1"},
        {"dumpable", NULL, NULL, "0"},
        {"core_limit", say_core, "Max core file size", "0"},
        {"ns_user", say_namespace, "user", NULL},
        {"ns_mnt", say_namespace, "mnt", NULL},
        {"ns_net", say_namespace, "net", NULL},
        {"ns_pid", say_namespace, "pid", NULL},
        {"ns_ipc", say_namespace, "ipc", NULL},
        {"ns_uts", say_namespace, "uts", NULL},
        {"root", say_root, "root", "empty, read-only"},
        {"seccomp", say_seccomp, "Seccomp:", "filter"},
        {"seccomp_filters", say_status, "Seccomp_filters:", NULL},
        {"descriptors", say_descriptors, NULL, NULL},
        {"fd_socket", say_descriptors, "socket:[", NULL},
        {"fd_pipe", say_descriptors, "pipe:[", NULL},
        {"fd_file", say_files, NULL, NULL},
        {"fd_device", say_descriptors, "/dev/", NULL},
        {"fd_anon", say_descriptors, "anon_inode:", NULL},
        {"landlock_abi", NULL, NULL, NULL},
};

const char *doctor_fact_name(size_t i)
{
	return i < sizeof(known) / sizeof(known[0]) ? known[i].name : NULL;
}

static const struct known *find(const char *name)
{
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (strcmp(known[i].name, name) == 0)
			return &known[i];
	return NULL;
}

/* On a kernel with Landlock no path may be allowed, and a connection that no rule allows has to be
 * refused. */
static bool is_weak(const struct known *k, const struct doctor_fact *fact)
{
	if (k && k->wanted)
		return strcmp(k->wanted, fact->value) != 0;
	if (strcmp(fact->name, "landlock_paths") == 0)
		return strcmp(fact->value, "none") != 0;
	return strcmp(fact->name, "landlock_probe") == 0 &&
	       strstr(fact->value, "not refused") != NULL;
}

/* What the kernel says, which is read again if it differs: the supervisor visits other network
 * namespaces for moments. Returns false if the kernel says nothing. */
static bool ask_kernel(
        const struct known *k, const struct process *process, struct doctor_fact *fact)
{
	const struct timespec moment = {.tv_nsec = 5 * 1000 * 1000};

	for (int i = 0; i < LOOKS; i++) {
		if (i)
			nanosleep(&moment, NULL);
		if (!k->say(process, k->key, fact->kernel, sizeof(fact->kernel)))
			return false;
		if (strcmp(fact->kernel, fact->value) == 0)
			break;
	}
	return true;
}

bool doctor_fact_read(
        struct slice line, const char *proc, pid_t pid, bool confined, struct doctor_fact *fact)
{
	const struct process process = {proc, pid};
	const char *colon = memchr(line.p, ':', line.n);
	size_t name_n = colon ? (size_t)(colon - (const char *)line.p) : 0;
	const struct known *k;

	memset(fact, 0, sizeof(*fact));
	if (name_n == 0 || name_n >= sizeof(fact->name) || line.n < name_n + 2)
		return false;
	slice_escape(slice_of(line.p, name_n), fact->name, sizeof(fact->name));
	slice_escape_controls(
	        slice_of(colon + 2, line.n - name_n - 2), fact->value, sizeof(fact->value));
	k = find(fact->name);
	fact->verdict = DOCTOR_CLAIMED;
	if (k && k->say && ask_kernel(k, &process, fact))
		fact->verdict =
		        strcmp(fact->kernel, fact->value) == 0 ? DOCTOR_AGREED : DOCTOR_DIFFERS;
	if (fact->verdict != DOCTOR_DIFFERS)
		fact->kernel[0] = '\0';
	if (fact->verdict != DOCTOR_DIFFERS && confined && is_weak(k, fact))
		fact->verdict = DOCTOR_WEAK;
	return true;
}

void doctor_fact_unsaid(const char *name, const char *proc, pid_t pid, struct doctor_fact *fact)
{
	const struct process process = {proc, pid};
	const struct known *k = find(name);

	memset(fact, 0, sizeof(*fact));
	snprintf(fact->name, sizeof(fact->name), "%s", name);
	snprintf(fact->value, sizeof(fact->value), "(not told)");
	fact->verdict = DOCTOR_DIFFERS;
	if (!k || !k->say || !k->say(&process, k->key, fact->kernel, sizeof(fact->kernel))) {
		fact->kernel[0] = '\0';
		fact->verdict = DOCTOR_WEAK;
	}
}
