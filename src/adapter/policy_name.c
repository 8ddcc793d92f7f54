/* SPDX-License-Identifier: Apache-2.0 */
/* Policies by name; see vethguard/adapter/policy_name.h. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "vethguard/adapter/policy_name.h"
#include "vethguard/base/slice.h"

#define SUFFIX ".yaml"
#define SHOWN_MAX 256 /* bytes of names in a message */

static bool is_alphanumeric(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

bool policy_name_is_valid(const char *name)
{
	size_t n = strlen(name);

	if (n == 0 || n > POLICY_FILE_NAME_MAX || !is_alphanumeric(name[0]))
		return false;
	for (size_t i = 1; i < n; i++)
		if (!is_alphanumeric(name[i]) && !strchr("._-", name[i]))
			return false;
	return true;
}

/* Writes the name if the file is a policy. */
static bool name_of(const char *file, char out[POLICY_FILE_NAME_MAX + 1])
{
	size_t n = strlen(file), end = sizeof(SUFFIX) - 1;

	if (n <= end || n - end > POLICY_FILE_NAME_MAX || strcmp(file + n - end, SUFFIX) != 0)
		return false;
	memcpy(out, file, n - end);
	out[n - end] = '\0';
	return policy_name_is_valid(out);
}

static int is_policy(const struct dirent *entry)
{
	char name[POLICY_FILE_NAME_MAX + 1];

	return name_of(entry->d_name, name);
}

/* Writes the names of the directory's policies, as many as fit. */
static void list(const char *directory, char out[SHOWN_MAX])
{
	struct dirent **entries = NULL;
	int count = scandir(directory, &entries, is_policy, alphasort);
	char name[POLICY_FILE_NAME_MAX + 1];
	size_t n = 0;

	out[0] = '\0';
	for (int i = 0; i < count; i++) {
		if (name_of(entries[i]->d_name, name) && n + strlen(name) + 8 < SHOWN_MAX)
			n += (size_t)snprintf(out + n, SHOWN_MAX - n, "%s%s", n ? ", " : "", name);
		else if (n + 5 < SHOWN_MAX && out[n ? n - 1 : 0] != '.')
			n += (size_t)snprintf(out + n, SHOWN_MAX - n, ", ...");
		free(entries[i]);
	}
	free(entries);
}

bool policy_name_resolve(const char *directory, const char *name, char out[PATH_MAX],
        char fault[POLICY_NAME_FAULT_MAX])
{
	char shown[128], names[SHOWN_MAX];
	struct stat st;

	if (!policy_name_is_valid(name)) {
		snprintf(fault, POLICY_NAME_FAULT_MAX,
		        "\"%s\" is not a policy's name: a name has up to %d letters, digits, '.', "
		        "'_' and '-', begins with a letter or digit, and is not a path",
		        slice_escape(slice_from_string(name), shown, sizeof(shown)),
		        POLICY_FILE_NAME_MAX);
		return false;
	}
	if (snprintf(out, PATH_MAX, "%s/%s" SUFFIX, directory, name) < PATH_MAX &&
	        stat(out, &st) == 0 && S_ISREG(st.st_mode))
		return true;
	list(directory, names);
	snprintf(fault, POLICY_NAME_FAULT_MAX, "there is no policy %s in %.128s%s%s%s", name,
	        directory, *names ? " (there are: " : "; put ", *names ? names : name,
	        *names ? ")" : SUFFIX " there");
	return false;
}
