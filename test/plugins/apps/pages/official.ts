// A page for tests that talks to the client with the official package.
import { App } from '@modelcontextprotocol/ext-apps'

const app = new App({ name: 'official', version: '1.0.0' })
app.ontoolresult = ({ structuredContent }) => {
  const main = document.querySelector('#app')
  if (main) main.textContent = String((structuredContent as { words?: string })?.words)
}
await app.connect()
