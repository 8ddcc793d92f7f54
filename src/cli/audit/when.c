/* SPDX-License-Identifier: Apache-2.0 */
/* Parses points in time as people write them. */
#include <ctype.h>
#include <string.h>
#include <time.h>

#include "cli/audit/audit.h"

#define AGO_MAX 1000000 /* of any unit: long before the first log, without overflow */

static bool parse_ago(const char *text, int64_t now_ms, int64_t *out_ms)
{
	static const struct {
		char letter;
		int64_t ms;
	} units[] = {{'s', 1000}, {'m', 60000}, {'h', 3600000}, {'d', 86400000}, {'w', 604800000}};
	size_t digits = strspn(text, "0123456789");
	uint64_t n;

	if (text[digits] == '\0' || text[digits + 1] != '\0' ||
	        !slice_to_u64(slice_of(text, digits), AGO_MAX, &n))
		return false;
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (units[i].letter != text[digits])
			continue;
		*out_ms = now_ms - (int64_t)n * units[i].ms;
		return true;
	}
	return false;
}

/* Takes exactly n digits with a value between low and high. */
static bool take(const char **p, int n, int low, int high, int *out)
{
	int v = 0;

	for (int i = 0; i < n; i++, (*p)++) {
		if (!isdigit((unsigned char)**p))
			return false;
		v = v * 10 + (**p - '0');
	}
	*out = v;
	return v >= low && v <= high;
}

static bool take_byte(const char **p, const char *any)
{
	if (**p == '\0' || !strchr(any, **p))
		return false;
	(*p)++;
	return true;
}

static bool take_time(const char **p, struct tm *tm, int *ms)
{
	int unit = 100, digit;

	if (!take(p, 2, 0, 23, &tm->tm_hour) || !take_byte(p, ":") ||
	        !take(p, 2, 0, 59, &tm->tm_min))
		return false;
	if (take_byte(p, ":") && !take(p, 2, 0, 60, &tm->tm_sec))
		return false;
	if (!take_byte(p, "."))
		return true;
	if (!isdigit((unsigned char)**p))
		return false;
	for (; isdigit((unsigned char)**p); unit /= 10) {
		take(p, 1, 0, 9, &digit);
		*ms += digit * unit;
	}
	return true;
}

/* Takes "Z" or "+hh:mm"; without either it is local time. */
static bool take_offset(const char **p, bool *local, int *minutes)
{
	bool minus = **p == '-';
	int hours, rest;

	*local = **p == '\0';
	*minutes = 0;
	if (*local || take_byte(p, "Zz"))
		return true;
	if (!take_byte(p, "+-") || !take(p, 2, 0, 23, &hours) || !take_byte(p, ":") ||
	        !take(p, 2, 0, 59, &rest))
		return false;
	*minutes = (hours * 60 + rest) * (minus ? -1 : 1);
	return true;
}

static bool is_calendar_day(const struct tm *tm)
{
	struct tm copy = *tm;

	copy.tm_hour = 12;
	timegm(&copy);
	return copy.tm_mday == tm->tm_mday && copy.tm_mon == tm->tm_mon;
}

static bool parse_date(const char *text, int64_t *out_ms)
{
	struct tm tm = {.tm_isdst = -1};
	const char *p = text;
	int ms = 0, minutes = 0;
	bool local = true;
	time_t seconds;

	if (!take(&p, 4, 1970, 9999, &tm.tm_year) || !take_byte(&p, "-") ||
	        !take(&p, 2, 1, 12, &tm.tm_mon) || !take_byte(&p, "-") ||
	        !take(&p, 2, 1, 31, &tm.tm_mday))
		return false;
	tm.tm_year -= 1900;
	tm.tm_mon -= 1;
	if (!is_calendar_day(&tm))
		return false;
	if (*p && (!take_byte(&p, "Tt ") || !take_time(&p, &tm, &ms) ||
	                  !take_offset(&p, &local, &minutes)))
		return false;
	if (*p)
		return false;
	seconds = local ? mktime(&tm) : timegm(&tm) - minutes * 60;
	*out_ms = (int64_t)seconds * 1000 + ms;
	return true;
}

bool audit_when_parse(const char *text, int64_t now_ms, int64_t *out_ms)
{
	return parse_ago(text, now_ms, out_ms) || parse_date(text, out_ms);
}
