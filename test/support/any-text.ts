// Texts and URLs with any code points, for property tests. fast-check's `unit: 'binary'` and `webUrl` build tables of 140 MB.
import fc from 'fast-check'

const codePoint = fc.oneof(
  fc.integer({ min: 0, max: 0x7f }),
  fc.integer({ min: 0, max: 0xd7ff }),
  fc.integer({ min: 0xe000, max: 0x10ffff }),
)

/** Text of any code points. */
export const anyText = (maxLength = 10): fc.Arbitrary<string> =>
  fc.array(codePoint, { maxLength }).map(points => String.fromCodePoint(...points))

/** Valid URLs with scheme http or https. */
export const anyUrl: fc.Arbitrary<string> = fc
  .record({
    scheme: fc.constantFrom('http', 'https'),
    host: fc.oneof(fc.domain(), fc.ipV4(), fc.constant('localhost')),
    port: fc.option(fc.nat(65_535)),
    path: fc.array(anyText(6), { maxLength: 4 }),
    query: fc.option(anyText()),
    fragment: fc.option(anyText()),
  })
  .map(
    ({ scheme, host, port, path, query, fragment }) =>
      `${scheme}://${host}${port === null ? '' : `:${port}`}/${path.map(encodeURIComponent).join('/')}${
        query === null ? '' : `?${encodeURIComponent(query)}`
      }${fragment === null ? '' : `#${encodeURIComponent(fragment)}`}`,
  )
