/* SPDX-License-Identifier: Apache-2.0 */
/* Module results that people meet have words; the others are shown as numbers. */
#include "token/result.h"

#include <stddef.h>
#include <stdio.h>

static const struct {
	ck_rv rv;
	const char *text;
} texts[] = {
        {CKR_FUNCTION_FAILED, "its function failed"},
        {CKR_DEVICE_ERROR, "device error"},
        {CKR_DEVICE_MEMORY, "the device has no memory left"},
        {CKR_DEVICE_REMOVED, "the token was removed"},
        {CKR_KEY_HANDLE_INVALID, "the key is gone"},
        {CKR_KEY_FUNCTION_NOT_PERMITTED, "the key may not sign"},
        {CKR_MECHANISM_INVALID, "it does not know this mechanism"},
        {CKR_PIN_INCORRECT, "it is wrong"},
        {CKR_PIN_INVALID, "it has characters that a PIN cannot have"},
        {CKR_PIN_LEN_RANGE, "it is too short or too long"},
        {CKR_PIN_EXPIRED, "it has expired"},
        {CKR_PIN_LOCKED, "its PIN is locked after wrong ones: unlock it as its security officer"},
        {CKR_SESSION_HANDLE_INVALID, "its session is gone"},
        {CKR_TOKEN_NOT_PRESENT, "the token is not there"},
        {CKR_USER_NOT_LOGGED_IN, "nobody is logged in any more"},
};

const char *result_text(ck_rv rv)
{
	static char number[40];

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		if (texts[i].rv == rv)
			return texts[i].text;
	snprintf(number, sizeof(number), "error 0x%lx of the module", rv);
	return number;
}
