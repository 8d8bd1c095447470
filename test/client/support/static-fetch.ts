// A `fetch` over a table of documents, for discovery at addresses that no test can listen on: https, other hosts, roots.

export type Entry = number | string | object | Error | (() => Response)

export interface TableFetch {
  readonly fetch: typeof fetch
  /** Every address that was asked for, in order. */
  readonly asked: string[]
}

function answer(entry: Entry | undefined): Response {
  if (entry === undefined) return new Response('nothing here', { status: 404 })
  if (typeof entry === 'number') return new Response('no', { status: entry })
  if (typeof entry === 'string') return new Response(entry, { headers: { 'content-type': 'text/html' } })
  if (typeof entry === 'function') return entry()
  if (entry instanceof Error) throw new TypeError('fetch failed', { cause: entry })
  return Response.json(entry)
}

/** A number answers with that status, a text as HTML, an object as JSON; an Error fails the connection; else 404. */
export function tableFetch(table: Readonly<Record<string, Entry>>): TableFetch {
  const asked: string[] = []
  return {
    asked,
    fetch: async input => {
      const url = input instanceof Request ? input.url : String(input)
      asked.push(url)
      return answer(table[url])
    },
  }
}
