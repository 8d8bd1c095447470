// Bodies that no client would register with: each member as anything that JSON can be, texts of every length and alphabet,
// and what is no JSON.

const VALUES: ReadonlyArray<readonly [what: string, value: unknown]> = [
  ['null', null],
  ['true', true],
  ['0', 0],
  ['-1', -1],
  ['1e308', 1e308],
  ['an empty text', ''],
  ['a text', 'x'],
  ['an empty list', []],
  ['a list of lists', [[['x']]]],
  ['a list of null', [null]],
  ['a list of objects', [{ toString: 'x', length: 1 }]],
  ['an object', {}],
  ['an object with a prototype', JSON.parse('{"__proto__":{"x":1},"constructor":{"prototype":{"y":2}}}')],
  ['a long text', 'x'.repeat(3_000)],
  ['a URL', 'https://app.example/x'],
  ['a URL of other letters', `https://app.example/${'漢'.repeat(1_500)}`],
  ['control characters', '\u0000\u0007\u001b[31m\u202e\u2028\r\nX: y'],
  ['half of a letter', '\ud800'],
]

const MEMBERS = [
  ...['client_id', 'client_secret', 'client_name', 'client_uri', 'redirect_uris', 'grant_types', 'response_types'],
  ...['token_endpoint_auth_method', 'token_endpoint_auth_signing_alg', 'jwks', 'jwks_uri', 'application_type', 'scope'],
  ...['contacts', 'logo_uri', 'tos_uri', 'software_id', 'software_statement', 'sector_identifier_uri', 'x_mcp_host'],
  ...[
    'id_token_signed_response_alg',
    'client_id_issued_at',
    'subject_type',
    'default_max_age',
    '__proto__',
    'constructor',
  ],
]

const WHOLE: ReadonlyArray<readonly [what: string, body: string]> = [
  ['nothing', ''],
  ['no JSON', '{'],
  ['null', 'null'],
  ['a list', '[]'],
  ['a text', '"x"'],
  ['a number', '7'],
  ['deep', '['.repeat(5_000) + ']'.repeat(5_000)],
  ['a BOM', '\ufeff{}'],
  ['NUL', '\u0000'],
]

/** `good`: what a client registers with, which each of these spoils in one place. */
export function* junkMetadata(good: object): Generator<readonly [what: string, body: unknown]> {
  for (const member of MEMBERS)
    for (const [what, value] of VALUES) {
      const text = JSON.stringify({ ...good, [member]: undefined }).replace(
        /^\{/,
        `{${JSON.stringify(member)}:${JSON.stringify(value)},`,
      )
      yield [`${member} is ${what}`, text]
    }
  yield* WHOLE
  yield [
    'many redirect URIs',
    { ...good, redirect_uris: Array.from({ length: 500 }, (_, n) => `http://127.0.0.1:9/${n}`) },
  ]
  yield ['a long redirect URI', { ...good, redirect_uris: [`http://127.0.0.1:9/${'x'.repeat(3_000)}`] }]
  yield ['a redirect URI of other letters', { ...good, redirect_uris: [`http://127.0.0.1:9/${'漢'.repeat(1_900)}`] }]
  yield ['many members', { ...good, ...Object.fromEntries(Array.from({ length: 2_000 }, (_, n) => [`m${n}`, n])) }]
}
