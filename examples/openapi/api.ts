// A small HTTP API. Start it at http://127.0.0.1:4000 with `npx tsx api.ts`.
import { createServer } from 'node:http'

interface Note {
  readonly id: number
  readonly text: string
}

const notes: Note[] = [{ id: 1, text: 'Buy tea' }]

export const api = createServer(async (req, res) => {
  const send = (status: number, body: unknown) =>
    res.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
  const { pathname, searchParams } = new URL(req.url ?? '/', 'http://api')
  const [, collection, id] = pathname.split('/')
  if (collection !== 'notes') return send(404, { title: 'Not found' })
  if (req.method === 'GET' && id === undefined) {
    const search = searchParams.get('search') ?? ''
    return send(200, { notes: notes.filter(({ text }) => text.includes(search)) })
  }
  if (req.method === 'GET') {
    const note = notes.find(one => one.id === Number(id))
    return note ? send(200, note) : send(404, { title: 'There is no such note' })
  }
  if (req.method !== 'POST') return send(405, { title: 'Method not allowed' })
  let text = ''
  for await (const chunk of req) text += chunk
  const note = { id: notes.length + 1, text: `${JSON.parse(text).text}` }
  notes.push(note)
  return send(201, note)
})

if (import.meta.filename === process.argv[1]) api.listen(4000, '127.0.0.1')
