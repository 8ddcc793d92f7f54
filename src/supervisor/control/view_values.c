/* SPDX-License-Identifier: Apache-2.0 */
/* Values in JSON that may be missing: such a value is null. */
#include <jansson.h>
#include <stdio.h>
#include <time.h>

#include "vethguard/wire/json.h"
#include "supervisor/control/call.h"

#define TIME_TEXT_MAX 40

void control_put_time(struct json *j, const char *key, int64_t ms)
{
	time_t seconds = (time_t)(ms / 1000);
	char date[24], text[TIME_TEXT_MAX];
	struct tm tm;

	if (ms <= 0 || !gmtime_r(&seconds, &tm) ||
	        strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%S", &tm) == 0) {
		json_put_null(j, key);
		return;
	}
	snprintf(text, sizeof(text), "%s.%03uZ", date, (unsigned)(ms % 1000));
	json_put_literal(j, key, text);
}

void control_put_text(struct json *j, const char *key, const char *text)
{
	if (text && *text)
		json_put_string(j, key, slice_from_string(text), 0);
	else
		json_put_null(j, key);
}

void control_put_slice(struct json *j, const char *key, struct slice text)
{
	if (text.n)
		json_put_string(j, key, text, 0);
	else
		json_put_null(j, key);
}

void control_put_ip(struct json *j, const char *key, const struct ip *ip)
{
	char text[IP_TEXT_MAX];

	if (ip->family)
		json_put_literal(j, key, ip_format(ip, text));
	else
		json_put_null(j, key);
}

void control_put_pid(struct json *j, const char *key, pid_t pid)
{
	if (pid > 0)
		json_put_int(j, key, pid);
	else
		json_put_null(j, key);
}
