/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cryptoki: the part of PKCS #11 2.40 (OASIS, pkcs11-base and pkcs11-curr) that is used here:
 * types, numbers, and the table of functions of a module up to C_Sign, whose order is the
 * standard's.
 */
#ifndef VETHGUARD_SRC_TOKEN_CRYPTOKI_H
#define VETHGUARD_SRC_TOKEN_CRYPTOKI_H

typedef unsigned char ck_byte;
typedef unsigned long ck_ulong;
typedef ck_ulong ck_rv;

#define CKR_OK 0x0UL
#define CKR_FUNCTION_FAILED 0x6UL
#define CKR_DATA_INVALID 0x20UL
#define CKR_DATA_LEN_RANGE 0x21UL
#define CKR_DEVICE_ERROR 0x30UL
#define CKR_DEVICE_MEMORY 0x31UL
#define CKR_DEVICE_REMOVED 0x32UL
#define CKR_KEY_HANDLE_INVALID 0x60UL
#define CKR_KEY_SIZE_RANGE 0x62UL
#define CKR_KEY_FUNCTION_NOT_PERMITTED 0x68UL
#define CKR_MECHANISM_INVALID 0x70UL
#define CKR_MECHANISM_PARAM_INVALID 0x71UL
#define CKR_PIN_INCORRECT 0xa0UL
#define CKR_PIN_INVALID 0xa1UL
#define CKR_PIN_LEN_RANGE 0xa2UL
#define CKR_PIN_EXPIRED 0xa3UL
#define CKR_PIN_LOCKED 0xa4UL
#define CKR_SESSION_HANDLE_INVALID 0xb3UL
#define CKR_TOKEN_NOT_PRESENT 0xe0UL
#define CKR_USER_ALREADY_LOGGED_IN 0x100UL
#define CKR_USER_NOT_LOGGED_IN 0x101UL
#define CKR_CRYPTOKI_ALREADY_INITIALIZED 0x191UL

#define CKF_LOGIN_REQUIRED 0x4UL
#define CKF_USER_PIN_INITIALIZED 0x8UL
#define CKF_PROTECTED_AUTHENTICATION_PATH 0x100UL
#define CKF_TOKEN_INITIALIZED 0x400UL
#define CKF_USER_PIN_FINAL_TRY 0x20000UL
#define CKF_USER_PIN_LOCKED 0x40000UL
#define CKF_SERIAL_SESSION 0x4UL
#define CKF_OS_LOCKING_OK 0x2UL
#define CKF_SIGN 0x800UL

#define CKU_USER 1UL
#define CKO_PRIVATE_KEY 3UL
#define CKK_RSA 0UL
#define CKK_EC 3UL
#define CKA_CLASS 0x0UL
#define CKA_LABEL 0x3UL
#define CKA_KEY_TYPE 0x100UL
#define CKA_ID 0x102UL
#define CKA_SIGN 0x108UL
#define CKA_ALWAYS_AUTHENTICATE 0x202UL
#define CKM_RSA_PKCS 0x1UL
#define CKM_RSA_PKCS_PSS 0xdUL
#define CKM_ECDSA 0x1041UL
#define CKM_SHA256 0x250UL
#define CKM_SHA384 0x260UL
#define CKM_SHA512 0x270UL
#define CKG_MGF1_SHA256 2UL
#define CKG_MGF1_SHA384 3UL
#define CKG_MGF1_SHA512 4UL

struct ck_version {
	ck_byte major, minor;
};

struct ck_token_info {
	ck_byte label[32], manufacturer[32], model[16], serial[16]; /* padded with blanks */
	ck_ulong flags;
	ck_ulong max_sessions, sessions, max_rw_sessions, rw_sessions, max_pin, min_pin;
	ck_ulong total_public, free_public, total_private, free_private;
	struct ck_version hardware, firmware;
	ck_byte time[16];
};

struct ck_mechanism {
	ck_ulong mechanism;
	void *parameter;
	ck_ulong parameter_n;
};

struct ck_pss { /* CK_RSA_PKCS_PSS_PARAMS */
	ck_ulong hash, mgf, salt_n;
};

struct ck_mechanism_info {
	ck_ulong least, most; /* size of a key */
	ck_ulong flags;
};

struct ck_attribute {
	ck_ulong type;
	void *value;
	ck_ulong n;
};

struct ck_initialize {
	void *create, *destroy, *lock, *unlock; /* NULL: the system's mutexes are used */
	ck_ulong flags;
	void *reserved;
};

typedef ck_rv (*ck_unused)(void);

struct ck_functions {
	struct ck_version version;
	ck_rv (*initialize)(struct ck_initialize *arguments);
	ck_rv (*finalize)(void *reserved);
	ck_unused get_info, get_function_list;
	ck_rv (*get_slot_list)(ck_byte present, ck_ulong *slots, ck_ulong *count);
	ck_unused get_slot_info;
	ck_rv (*get_token_info)(ck_ulong slot, struct ck_token_info *info);
	ck_unused get_mechanism_list;
	ck_rv (*get_mechanism_info)(
	        ck_ulong slot, ck_ulong mechanism, struct ck_mechanism_info *info);
	ck_unused init_token, init_pin, set_pin;
	ck_rv (*open_session)(
	        ck_ulong slot, ck_ulong flags, void *context, void *notify, ck_ulong *session);
	ck_unused close_session, close_all_sessions, get_session_info, get_operation_state,
	        set_operation_state;
	ck_rv (*login)(ck_ulong session, ck_ulong user, const ck_byte *pin, ck_ulong n);
	ck_unused logout, create_object, copy_object, destroy_object, get_object_size;
	ck_rv (*get_attribute_value)(
	        ck_ulong session, ck_ulong object, struct ck_attribute *attributes, ck_ulong count);
	ck_unused set_attribute_value;
	ck_rv (*find_objects_init)(
	        ck_ulong session, struct ck_attribute *attributes, ck_ulong count);
	ck_rv (*find_objects)(ck_ulong session, ck_ulong *objects, ck_ulong most, ck_ulong *count);
	ck_rv (*find_objects_final)(ck_ulong session);
	ck_unused encrypt_init, encrypt, encrypt_update, encrypt_final;
	ck_unused decrypt_init, decrypt, decrypt_update, decrypt_final;
	ck_unused digest_init, digest, digest_update, digest_key, digest_final;
	ck_rv (*sign_init)(ck_ulong session, struct ck_mechanism *mechanism, ck_ulong key);
	ck_rv (*sign)(
	        ck_ulong session, const ck_byte *data, ck_ulong n, ck_byte *out, ck_ulong *out_n);
};

#endif
