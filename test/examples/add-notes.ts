// Adds notes to a file until it is killed, and prints the id of each stored note. note-store.system.ts kills it.
import { createNoteStore } from '../../examples/notes/note-store.ts'

const [file = ''] = process.argv.slice(2)
const store = createNoteStore(() => file)
const text = 'x'.repeat(100_000)
for (;;) process.stdout.write(`${(await store.add({ title: 'kept', text, tags: [] })).id}\n`)
