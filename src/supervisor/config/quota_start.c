/* SPDX-License-Identifier: Apache-2.0 */
#include "supervisor/config/quota_start.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "supervisor/config/private.h"
#include "supervisor/os/operator_file.h"
#include "vethguard/base/log.h"

static void add_addresses(
        struct message_quota_start *m, const struct config_quota *config, const struct settings *s)
{
	if (config->address.family) {
		m->addresses[m->address_count++] = config->address;
		return;
	}
	for (size_t i = 0; i < s->host_count; i++)
		if (m->address_count < MESSAGE_QUOTA_ADDRESSES_MAX &&
		        strcmp(s->hosts[i].name, config->host) == 0)
			m->addresses[m->address_count++] = s->hosts[i].address;
}

static int fail(int rc, const char *text, char why[QUOTA_WHY_MAX])
{
	snprintf(why, QUOTA_WHY_MAX, "%s: %s", text, strerror(-rc));
	return rc;
}

static int open_all(const struct config_quota *config, const struct settings *s,
        struct memory_trusted *kept, struct quota_start *out, char why[QUOTA_WHY_MAX])
{
	struct message_quota_start *m = &out->message;
	const char *culprit = NULL;
	int rc = memfd_trusted(&s->config, kept, &out->trusted, &culprit);

	if (rc)
		return fail(rc, culprit ? culprit : "memory for trusted CAs", why);
	add_addresses(m, config, s);
	m->server_count = (uint32_t)s->server_count;
	memcpy(m->servers, s->servers, sizeof(m->servers));
	if (!config->password_file[0])
		return 0;
	out->password = operator_file_open(
	        "quota.password", config->password_file, true, why, QUOTA_WHY_MAX);
	m->has_password = out->password >= 0;
	return out->password < 0 ? out->password : 0;
}

int quota_start_open(const struct config_quota *config, const char *config_path,
        struct memory_trusted *kept, struct quota_start *out, char why[QUOTA_WHY_MAX])
{
	struct settings *s = settings_of_services(config_path);
	int rc;

	*out = (struct quota_start){.message = {.log_level = (uint8_t)log_level(),
	                                    .tls = config->tls,
	                                    .port = config->port,
	                                    .database = config->database,
	                                    .host = slice_from_string(config->host),
	                                    .user = slice_from_string(config->user)},
	        .password = -1};
	rc = s ? open_all(config, s, kept, out, why)
	       : fail(-EINVAL, "the configuration cannot be used", why);
	settings_put(s);
	if (rc)
		quota_start_close(out);
	return rc;
}

void quota_start_close(struct quota_start *start)
{
	memory_bundle_put(start->trusted);
	start->trusted = NULL;
	if (start->password >= 0)
		close(start->password);
	start->password = -1;
}
