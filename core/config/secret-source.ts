// A secret that code may give anew whenever it is needed: what `tsType: 'SecretSource'` of a schema names.

/** A text, or a password and until when it is good: a Date, or milliseconds since 1970. */
type GivenSecret = string | { readonly password: string; readonly expires?: Date | number }

/** The secret itself, or a function that gives it: called for each connection, and again before it expires. */
export type SecretSource = string | (() => GivenSecret | Promise<GivenSecret>)
