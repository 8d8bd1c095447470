// The default theme with own colors, tables for narrow screens, and a home page that has a main landmark.
import { Content } from 'vitepress'
import DefaultTheme, { VPHomeContent, VPHomeHero } from 'vitepress/theme'
import { h } from 'vue'
import './style.css'

const HomePage = () => h('main', { class: 'VPHome' }, [h(VPHomeHero), h(VPHomeContent, () => h(Content))])

export default {
  extends: DefaultTheme,
  enhanceApp: ({ app }: { app: import('vue').App }) => app.component('HomePage', HomePage),
}
