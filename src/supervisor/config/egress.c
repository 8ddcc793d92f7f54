/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks of the egress settings: source addresses that this host has, a proxy that can carry what
 * the policy allows, and its password.
 */
#include <errno.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vethguard/credential/mask.h"
#include "supervisor/config/sources.h"
#include "supervisor/config/private.h"

#define PASSWORD_ROOM (CONFIG_EGRESS_PAIR_MAX + 1) /* with the end of a line */

/* Returns why these bytes (without one trailing line end) cannot be a password, or NULL. */
static const char *password_objection(const uint8_t *p, size_t n, size_t room)
{
	if (n == 0)
		return "is empty";
	if (n > room)
		return "is too long for a password";
	for (size_t i = 0; i < n; i++)
		if (p[i] < 0x20 || p[i] == 0x7f)
			return "holds a control character or a second line";
	return NULL;
}

/* The same for the pair; too_short if user and password together are too short to be masked. */
static const char *pair_objection(
        const struct settings *s, const uint8_t *password, size_t n, const char *too_short)
{
	size_t before = strlen(s->config.egress_user) + 1;
	const char *why = password_objection(password, n, CONFIG_EGRESS_PAIR_MAX - before);

	return !why && before + n < MASK_VALUE_MIN ? too_short : why;
}

/* Allocates "user:" with room more bytes. Returns 0 or -errno. */
static int begin_pair(struct settings *s, size_t room)
{
	struct secret *pair = &s->egress_pair;
	size_t user = strlen(s->config.egress_user);
	int rc = secret_alloc(pair, user + 1 + room);

	if (rc)
		return rc;
	memcpy(pair->p, s->config.egress_user, user);
	pair->p[user] = ':';
	pair->n = user + 1;
	return 0;
}

/* User and password from the proxy's URL. */
static int join_pair(struct settings *s, struct diag_list *diags)
{
	struct secret *password = &s->config.egress_password, *pair = &s->egress_pair;
	const char *why =
	        pair_objection(s, password->p, password->n, "is too short together with its user");
	int rc;

	if (why) {
		diag_add(diags, "egress.proxy", 0, 0, "its password %s", why);
		return -EINVAL;
	}
	rc = begin_pair(s, password->n);
	if (rc)
		return rc;
	memcpy(pair->p + pair->n, password->p, password->n);
	pair->n += password->n;
	secret_free(password);
	return 0;
}

/* Reads the password from a file that the invoking user or root keeps from everybody else. */
int settings_read_egress_pair(
        struct settings *s, const struct identity *identity, bool wait, struct diag_list *diags)
{
	const char *path = s->config.egress_password_file, *why;
	struct secret *pair = &s->egress_pair;
	char error[SOURCE_ERROR_MAX];
	struct stat st;
	ssize_t n;

	if (!path[0])
		return s->config.egress_password.n ? join_pair(s, diags) : 0;
	int fd = source_file_open(identity, path, wait, error);
	if (fd < 0) {
		diag_add(diags, "egress.password_file", 0, 0, "%s", error);
		return -EINVAL;
	}
	int rc = begin_pair(s, PASSWORD_ROOM);
	if (rc < 0) {
		close(fd);
		return rc;
	}
	n = read(fd, pair->p + pair->n, PASSWORD_ROOM);
	if (n > 0 && pair->p[pair->n + (size_t)n - 1] == '\n')
		n--;
	if (n < 0)
		why = "cannot be read";
	else if (fstat(fd, &st) < 0 || (st.st_mode & S_IROTH))
		why = "can be read by everybody: chmod o-r fixes that";
	else
		why = pair_objection(
		        s, pair->p + pair->n, (size_t)n, "is too short together with egress.user");
	close(fd);
	if (why) {
		diag_add(diags, path, 0, 0, "egress.password_file %s", why);
		return -EINVAL;
	}
	pair->n += (size_t)n;
	return 0;
}

/* The address is tried in this namespace, which is the one the worker dials from. */
static int check_source(const struct ip *address, const struct config_place *target,
        const char *config_path, struct diag_list *diags)
{
	struct sockaddr_storage from;
	socklen_t n = ip_to_sockaddr(address, 0, &from);
	char text[IP_TEXT_MAX];
	int rc = 0, fd;

	if (!address->family)
		return 0;
	fd = socket(from.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || bind(fd, (struct sockaddr *)&from, n) < 0)
		rc = errno;
	if (fd >= 0)
		close(fd);
	if (rc == EADDRNOTAVAIL)
		diag_add(diags, config_path, target->line, target->column,
		        "egress.address %s: this host has no such address",
		        ip_format(address, text));
	else if (rc)
		diag_add(diags, config_path, target->line, target->column,
		        "egress.address %s cannot be used: %s", ip_format(address, text),
		        strerror(rc));
	return rc ? -EINVAL : 0;
}

int settings_check_egress_address(
        const struct config *c, const char *config_path, struct diag_list *diags)
{
	int rc4 = check_source(&c->egress.address4, &c->egress_place4, config_path, diags);
	int rc6 = check_source(&c->egress.address6, &c->egress_place6, config_path, diags);

	return rc4 ? rc4 : rc6;
}

/* CONNECT carries TCP only. */
int settings_check_egress(
        const struct settings *s, const char *policy_path, struct diag_list *diags)
{
	uint16_t port;

	if (!s->config.egress.proxy_port || policy_udp_ports(&s->policy, &port, 1) == 0)
		return 0;
	diag_add(diags, policy_path, 0, 0,
	        "a udp:// rule cannot be served: the configuration sends everything through "
	        "egress.proxy, which carries TCP only");
	return -EINVAL;
}
