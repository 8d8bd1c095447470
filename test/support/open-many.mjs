// A process that opens many connections at once, sends a request on each where it is given one, and prints how many were
// made, answered 200 and failed. It ends when all are over, or when nothing has happened for a while.
import { connect } from 'node:net'

/** How long none may come before the rest counts as not kept, milliseconds: nobody is told of those, and the system tries again after 1 s. */
const PATIENCE = 400

const [url = '', count = '', request = ''] = process.argv.slice(2)
const { hostname: host, port } = new URL(url)
const told = { connected: 0, answered: 0, failed: 0 }
let open = Number(count)

const end = () => {
  process.stdout.write(`${JSON.stringify(told)}\n`, () => process.exit())
}
const settle = () => {
  if (--open === 0) end()
}

/** Looks after a turn of the event loop, so that a process that stood still sees first what came meanwhile. */
function endIfQuiet(before) {
  const { connected } = told
  if (connected === before) end()
  else setTimeout(() => setImmediate(endIfQuiet, connected), PATIENCE)
}
// With a request all are waited for.
if (request === '') endIfQuiet(-1)

for (let index = 0; index < Number(count); index++) {
  let text = ''
  const socket = connect({ host, port: Number(port) })
  socket.once('connect', () => {
    told.connected++
    if (request === '') settle()
    else socket.write(request, 'latin1')
  })
  socket.on('data', chunk => {
    text += chunk
  })
  socket.once('error', () => told.failed++)
  socket.once('close', () => {
    if (text.startsWith('HTTP/1.1 200')) told.answered++
    settle()
  })
}
