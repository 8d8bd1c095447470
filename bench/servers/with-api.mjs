// Starts the echo API, and then a server that calls it. Arguments: those of node for the server. Stops both on SIGTERM.
import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'

const children = []

process.once('exit', () => {
  for (const child of children) child.kill('SIGKILL')
})

const start = (args, env) =>
  new Promise((resolve, reject) => {
    const child = spawn(process.execPath, args, {
      env: { ...process.env, ...env },
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    children.push(child)
    let output = ''
    child.stdout.setEncoding('utf8').on('data', text => {
      output += text
      const printed = /listening on (http:\/\/[\d.:]+)/.exec(output)?.[1]
      if (printed) resolve(printed)
    })
    child.once('exit', code => reject(new Error(`${args[0]} exited with ${code}: ${output}`)))
  })

const api = await start([fileURLToPath(new URL('echo-api.mjs', import.meta.url))], {})
const url = await start(process.argv.slice(2), { API_URL: api })
process.once('SIGTERM', () => process.exit(0))
console.log(`listening on ${url}`)
