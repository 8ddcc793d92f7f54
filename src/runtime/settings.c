/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file is flat YAML: lines of the form "key: value", and comments. A value may be quoted. All
 * other YAML is refused, so that no line is read as something that it is not.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vethguard/adapter/control_client.h"
#include "vethguard/base/diag.h"
#include "runtime/entry.h"
#include "runtime/settings.h"

#define NAME_START "vethguard-"

static const char *const folders[] = {
        "/usr/local/sbin/", "/usr/local/bin/", "/usr/sbin/", "/usr/bin/", "/sbin/", "/bin/"};
static const char *const own_names[] = {"runc", "crun", "runsc"};

static bool take_path(char out[PATH_MAX], const char *where, const char *key, const char *value,
        struct fault *fault)
{
	if (value[0] != '/')
		return fault_set(fault, "%s: %s has to be an absolute path", where, key);
	return snprintf(out, PATH_MAX, "%s", value) < PATH_MAX ||
	       fault_set(fault, "%s: %s: the path is too long", where, key);
}

static bool take_without(
        struct settings *s, const char *where, const char *value, struct fault *fault)
{
	s->without_policy = strcmp(value, "refuse") == 0 ? WITHOUT_REFUSE
	                    : strcmp(value, "pass") == 0 ? WITHOUT_PASS
	                                                 : WITHOUT_NAME;
	if (s->without_policy != WITHOUT_NAME)
		return true;
	if (!policy_name_is_valid(value))
		return fault_set(fault,
		        "%s: without_policy is refuse, pass, or the name of a policy", where);
	snprintf(s->policy, sizeof(s->policy), "%s", value);
	return true;
}

static bool take(struct settings *s, const char *where, const char *key, const char *value,
        struct fault *fault)
{
	static const char *const keys[] = {"runtime", "policies", "without_policy", "environment",
	        "socket", "directory", NULL};
	const struct diag_known known = {keys, "known here", NULL, NULL};
	char hint[DIAG_HINT_MAX], shown[64];

	if (strcmp(key, "runtime") == 0) {
		if (!*value || (value[0] != '/' && strchr(value, '/')))
			return fault_set(fault,
			        "%s: runtime is a name like runc, or an absolute path", where);
		return snprintf(s->runtime, PATH_MAX, "%s", value) < PATH_MAX ||
		       fault_set(fault, "%s: runtime: the path is too long", where);
	}
	if (strcmp(key, "policies") == 0)
		return take_path(s->policies, where, key, value, fault);
	if (strcmp(key, "socket") == 0)
		return take_path(s->socket, where, key, value, fault);
	if (strcmp(key, "directory") == 0)
		return take_path(s->directory, where, key, value, fault);
	if (strcmp(key, "environment") == 0) {
		s->environment = strcmp(value, "true") == 0;
		return s->environment || strcmp(value, "false") == 0 ||
		       fault_set(fault, "%s: environment is true or false", where);
	}
	if (strcmp(key, "without_policy") == 0)
		return take_without(s, where, value, fault);
	return fault_set(fault, "%s: %s: there is no such key%s", where,
	        slice_escape(slice_from_string(key), shown, sizeof(shown)),
	        diag_hint(slice_from_string(key), &known, hint));
}

/* Cuts spaces, a comment and quotes off. Returns NULL if that is no plain value. */
static char *plain_value(char *text)
{
	char *end;

	text += strspn(text, " \t");
	if (*text == '"' || *text == '\'') {
		end = strchr(text + 1, *text);
		if (!end || end[1 + strspn(end + 1, " \t")] || strchr(text, '\\'))
			return NULL;
		*end = '\0';
		return text + 1;
	}
	end = strstr(text, " #");
	if (end)
		*end = '\0';
	for (end = text + strlen(text); end > text && strchr(" \t\r", end[-1]); end--)
		end[-1] = '\0';
	return *text && !strchr("[]{}&*!|>%@`-?:,#", *text) ? text : NULL;
}

static bool parse_line(struct settings *s, const char *where, char *text, struct fault *fault)
{
	char *colon = strchr(text, ':'), *value;

	if (!text[strspn(text, " \t\r")] || text[0] == '#' || strcmp(text, "---") == 0)
		return true;
	value = colon && (colon[1] == ' ' || colon[1] == '\t') ? plain_value(colon + 1) : NULL;
	if (!value)
		return fault_set(fault, "%s: a line is \"key: value\"", where);
	*colon = '\0';
	return take(s, where, text, value, fault);
}

bool runtime_settings_parse(struct settings *s, const char *name, char *text, struct fault *fault)
{
	char where[PATH_MAX + 32], *save = NULL;
	unsigned number = 0;

	*s = (struct settings){.without_policy = WITHOUT_REFUSE,
	        .environment = true,
	        .runtime = "runc",
	        .policies = POLICY_DIRECTORY_DEFAULT,
	        .socket = CONTROL_SOCKET_DEFAULT,
	        .directory = ENTRY_DIRECTORY_DEFAULT};
	while ((save = text) && *text) {
		text = strchr(save, '\n');
		if (text)
			*text++ = '\0';
		snprintf(where, sizeof(where), "%s:%u", name, ++number);
		if (!parse_line(s, where, save, fault))
			return false;
	}
	return true;
}

bool runtime_settings_read(struct settings *s, const char *path, struct fault *fault)
{
	static char text[SETTINGS_FILE_MAX + 1];
	const char *name = path ? path : SETTINGS_PATH;
	int fd = open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;
	ssize_t n = 0;

	if (fd < 0 && errno == ENOENT && !path)
		return runtime_settings_parse(s, name, text, fault);
	if (fd < 0)
		return fault_set(fault, "%s: %s", name, strerror(errno));
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size > SETTINGS_FILE_MAX)
		n = -1;
	else
		n = read(fd, text, SETTINGS_FILE_MAX);
	close(fd);
	if (n < 0 || memchr(text, '\0', (size_t)n))
		return fault_set(fault, "%s is not a text file of at most %d bytes", name,
		        SETTINGS_FILE_MAX);
	text[n] = '\0';
	if (st.st_mode & (S_IWGRP | S_IWOTH))
		return fault_set(fault,
		        "%s can be written by others than its owner: it decides what is guarded; "
		        "chmod go-w it",
		        name);
	return runtime_settings_parse(s, name, text, fault);
}

bool runtime_settings_find(struct settings *s, const char *own_name, struct fault *fault)
{
	const char *slash = strrchr(own_name, '/'), *base = slash ? slash + 1 : own_name;
	char path[PATH_MAX];

	for (size_t i = 0; i < sizeof(own_names) / sizeof(own_names[0]); i++)
		if (strncmp(base, NAME_START, strlen(NAME_START)) == 0 &&
		        strcmp(base + strlen(NAME_START), own_names[i]) == 0)
			snprintf(s->runtime, sizeof(s->runtime), "%s", own_names[i]);
	if (s->runtime[0] == '/')
		return access(s->runtime, X_OK) == 0 ||
		       fault_set(fault, "the real runtime %s: %s", s->runtime, strerror(errno));
	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
		if (snprintf(path, sizeof(path), "%s%s", folders[i], s->runtime) >= PATH_MAX ||
		        access(path, X_OK) != 0)
			continue;
		memcpy(s->runtime, path, sizeof(path));
		return true;
	}
	return fault_set(fault,
	        "the real runtime %s is not installed (looked in /usr/local/sbin, /usr/local/bin, "
	        "/usr/sbin, /usr/bin, /sbin and /bin); name it with \"runtime:\" in " SETTINGS_PATH,
	        s->runtime);
}
