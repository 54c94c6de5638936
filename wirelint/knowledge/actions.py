"""Verbs of action: what an agent says it did or is about to do, grouped by the kind of tool that would do it.

A verb is listed once by its base form; the English forms are derived. The other languages list the forms that claims
and announcements use. What a verb acts on is told by *topics*: nouns, sorted into fields such as `file`, `web`,
`mail`, in which a claim and a tool must meet.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Literal, get_args

Kind = Literal["search", "read", "write", "create", "delete", "send", "run", "book", "control"]
Topic = Literal[
    "file",
    "web",
    "knowledge",
    "data",
    "mail",
    "calendar",
    "order",
    "travel",
    "ticket",
    "weather",
    "device",
    "run",
    "memory",
]
KINDS: tuple[Kind, ...] = get_args(Kind)

ENGLISH: Mapping[Kind, str] = MappingProxyType(
    {
        "search": "search query browse google grep look_up look_for",
        "read": "read open view inspect examine check list fetch retrieve download load scan look_at look_into pull_up "
        "go_through visit "
        "review get explore access consult verify",
        "write": "update edit modify change patch replace save rename rewrite add fix apply append insert move copy "
        "refactor "
        "overwrite write set_up configure adjust correct bump adapt port implement upload log record",
        "create": "create generate make register file add open set_up write build log",
        "delete": "delete remove erase clear purge drop wipe cancel uninstall",
        "send": "send email e-mail post notify message forward submit publish share text ping escalate transfer reply",
        "run": "run execute call invoke test compile build install deploy start restart launch commit push merge rerun "
        "stop "
        "trigger kill use format lint query",
        "book": "book reserve schedule order purchase buy refund pay issue process cancel reschedule charge subscribe "
        "enroll place",
        "control": "turn_on turn_off switch_on switch_off turn switch lock unlock dim set adjust lower raise enable "
        "disable activate deactivate",
    }
)
_IRREGULAR = {
    "read": "read read",
    "write": "wrote written",
    "rewrite": "rewrote rewritten",
    "overwrite": "overwrote overwritten",
    "get": "got gotten",
    "set": "set set",
    "send": "sent sent",
    "make": "made made",
    "build": "built built",
    "run": "ran run",
    "rerun": "reran rerun",
    "pay": "paid paid",
    "buy": "bought bought",
    "look": "looked looked",
    "go": "went gone",
}
_DOUBLED = frozenset({
    "drop", "commit", "submit", "transfer", "dim", "stop", "grep", "log", "scan", "get", "set", "run", "rerun",
    "format",
})  # fmt: skip

FOREIGN_DONE: Mapping[Kind, str] = MappingProxyType(
    {
        "search": "gesucht durchsucht recherchiert nachgeschlagen abgefragt|cherché recherché consulté interrogé"
        "|buscado consultado busqué consulté|搜索 搜寻 查找 检索 查询 搜",
        "read": "gelesen geöffnet geprüft überprüft nachgesehen abgerufen heruntergeladen angesehen eingesehen geladen"
        "|lu ouvert vérifié récupéré téléchargé|leído abierto revisado verificado descargado leí abrí revisé verifiqué"
        "|读取 阅读 打开 检查 查看 查阅 获取 下载 读",
        "write": "aktualisiert geändert bearbeitet angepasst ersetzt gespeichert umbenannt ergänzt korrigiert behoben "
        "eingetragen"
        "|modifié mis_à_jour enregistré remplacé corrigé renommé ajouté sauvegardé"
        "|actualizado modificado guardado cambiado corregido editado añadido actualicé modifiqué guardé cambié corregí"
        "|更新 修改 编辑 替换 保存 写入 修复 重命名",
        "create": "erstellt angelegt hinzugefügt eröffnet erzeugt|créé ouvert ajouté généré|creado generado "
        "abierto creé "
        "generé"
        "|创建 新建 添加 建立",
        "delete": "gelöscht entfernt storniert abgesagt|supprimé effacé annulé|eliminado borrado cancelado eliminé "
        "borré "
        "cancelé"
        "|删除 移除 取消 清除",
        "send": "gesendet verschickt geschickt versendet abgeschickt gepostet weitergeleitet|envoyé transmis publié "
        "transféré"
        "|enviado publicado reenviado envié publiqué|发送 发布 转发 发给 提交",
        "run": "ausgeführt gestartet getestet installiert kompiliert deployt aufgerufen|exécuté lancé testé installé "
        "déployé"
        "|ejecutado lanzado probado instalado desplegado ejecuté lancé|运行 执行 调用 安装 部署 启动 测试",
        "book": "gebucht reserviert bestellt erstattet storniert überwiesen|réservé commandé remboursé annulé planifié"
        "|reservado pedido reembolsado comprado programado cancelado reservé cancelé|预订 预约 安排 下单 退款 取消",
        "control": "eingeschaltet ausgeschaltet eingestellt|allumé éteint réglé|encendido apagado ajustado encendí "
        "apagué|"
        "关闭 打开 设置",
    }
)
FOREIGN_ASKED: Mapping[Kind, str] = MappingProxyType(
    {
        "search": "such suche durchsuche finde recherchiere schau|cherche recherche trouve|busca encuentra "
        "consulta|搜索 查找 "
        "搜 查 找",
        "read": "lies lese öffne prüfe zeig zeige|lis ouvre vérifie montre|lee abre revisa muestra|读 打开 检查 看 "
        "查看",
        "write": "ändere aktualisiere speichere ersetze korrigiere setze trag|modifie corrige enregistre remplace "
        "change"
        "|cambia actualiza guarda corrige modifica|修改 更新 保存 改",
        "create": "erstelle erzeuge leg lege|crée ajoute|crea añade agrega|创建 新建 添加",
        "delete": "lösche entferne storniere|supprime efface annule|elimina borra cancela|删除 取消",
        "send": "sende schick schicke verschicke maile schreib|envoie envoyer transmets|envía manda escribe|发送 "
        "发邮件 发 通知",
        "run": "starte führe teste installiere|exécute lance teste|ejecuta lanza prueba|运行 执行 测试",
        "book": "buche reserviere bestelle|réserve commande|reserva compra pide|预订 订 预约 安排",
        "control": "schalte mach stell|allume éteins règle|enciende apaga ajusta|关 开 打开",
    }
)
FOREIGN_SOON: Mapping[Kind, str] = MappingProxyType(
    {
        "search": "suche durchsuche recherchiere suchen durchsuchen recherchieren nachschlagen|chercher rechercher "
        "cherche "
        "recherche"
        "|buscar busco consultar|搜索 查找 检索 查询 搜 查",
        "read": "lese öffne prüfe lesen öffnen prüfen überprüfen nachsehen abrufen ansehen nachschauen anschauen"
        "|lire ouvrir vérifier lis ouvre vérifie consulter regarder récupérer|leer abrir revisar verificar leo "
        "reviso descargar"
        "|读取 阅读 打开 检查 查看 查阅 获取 看看 看一下 下载",
        "write": "aktualisiere ändere aktualisieren ändern bearbeiten anpassen speichern speichere ersetzen "
        "korrigieren "
        "beheben"
        "|modifier enregistrer corriger remplacer|actualizar modificar guardar corregir editar|更新 修改 编辑 保存 "
        "写入 修复",
        "create": "erstelle erstellen anlegen lege|créer crée|crear creo|创建 新建 添加",
        "delete": "lösche löschen entfernen storniere stornieren|supprimer effacer annuler|eliminar borrar "
        "cancelar|删除 移除 "
        "取消",
        "send": "sende senden schicke schicken verschicken|envoyer envoie|enviar envío|发送 发给",
        "run": "starte starten ausführen teste testen installieren führe|exécuter lancer tester|ejecutar ejecuto "
        "lanzar|"
        "运行 执行 调用 启动",
        "book": "buche buchen reserviere reservieren bestellen|réserver commander|reservar pedir|预订 预约 安排 下单",
        "control": "schalte ausschalten einschalten|allumer éteindre|encender apagar|关闭 打开 设置",
    }
)

_TOPICS: Mapping[Topic, str] = MappingProxyType(
    {
        "file": "code project_structure project_files file folder directory repo repository codebase filesystem "
        "workspace branch commit readme "
        "dockerfile makefile disk "
        "datei ordner verzeichnis fichier dossier répertoire archivo fichero carpeta directorio 文件 目录 文件夹 "
        "代码库 仓库 分支 "
        "source config configuration log pull origin",
        "web": "web internet online website site webpage url news google link blog seite netz webseite página sitio "
        "actualités "
        "noticias 网络 网上 网页 网站 新闻 互联网 browser http",
        "knowledge": "knowledge kb documentation docs wiki article index faq handbook library archive corpus "
        "wissensdatenbank "
        "wissensbasis dokumentation base_de_connaissances base_de_conocimientos 知识库 文档 资料库 document notion "
        "confluence vault note",
        "data": "database db table record row sql warehouse crm customer contact lead account user profile spreadsheet "
        "sheet dataset "
        "entry employee datenbank tabelle datensatz kunde konto base_de_données compte client base_de_datos "
        "tabla cuenta cliente "
        "数据库 记录 账户 客户 column schema system registro enregistrement eintrag settings address preference",
        "mail": "email e-mail mail inbox mailbox message notification sms slack channel invite invitation newsletter "
        "reply teams nachricht "
        "mails e-mails courriel correo mensaje 邮件 消息 短信 收件箱 通知 chat discord",
        "calendar": "calendar event meeting appointment schedule reminder booking reservation availability alarm "
        "timer task "
        "todo slot agenda "
        "kalender termin besprechung erinnerung aufgabe buchung calendrier rendez-vous réunion rappel calendario "
        "cita reunión "
        "recordatorio 日历 日程 会议 提醒 任务 闹钟 预约",
        "order": "order purchase cart product item inventory stock shipment delivery package return refund payment "
        "invoice subscription "
        "transaction balance money transfer price bestellung lieferung rechnung zahlung erstattung commande "
        "livraison facture paiement "
        "remboursement pedido envío factura pago reembolso 订单 库存 退款 付款 发票 物流 shipping ship tracking share",
        "travel": "flight hotel room trip train ticket seat restaurant table car rental reservation booking flug "
        "zimmer "
        "hotel tisch vol "
        "chambre vuelo habitación mesa 航班 酒店 房间 餐厅 机票",
        "ticket": "issue ticket pr bug jira github incident case pull_request escalation support vorgang 工单 问题单",
        "weather": "weather forecast temperature wetter météo clima tiempo 天气",
        "device": "light lamp thermostat heating door lock garage tv music volume camera fan blind temperature alarm "
        "speaker licht lampe "
        "heizung tür lumière chauffage porte luz calefacción puerta 灯 空调 门 音量",
        "run": "test suite build command script server deployment service container process linter lint benchmark "
        "migration pipeline job "
        "query code program shell terminal check skript befehl test tests commande script comando prueba 测试 命令 "
        "脚本 代码 服务 程序 "
        "python workflow task branch commit nginx docker package dependency change",
        "memory": "memory memories fact preference gedächtnis erinnerungen mémoire memoria 记忆",
    }
)


def _past(verb: str) -> tuple[str, str]:
    head, _, tail = verb.partition("_")
    irregular = _IRREGULAR.get(head)
    if irregular:
        past, participle = irregular.split()
    elif head.endswith("e"):
        past = participle = f"{head}d"
    elif head.endswith("y") and head[-2] not in "aeou":
        past = participle = f"{head[:-1]}ied"
    else:
        past = participle = f"{head}{head[-1]}ed" if head in _DOUBLED else f"{head}ed"
    if head == "cancel":
        past = participle = "cancell?ed"
    return (f"{past} {tail}", f"{participle} {tail}") if tail else (past, participle)


def _gerund(verb: str) -> str:
    head, _, tail = verb.partition("_")
    if head in _DOUBLED:
        made = f"{head}{head[-1]}ing"
    elif head == "cancel":
        made = "cancell?ing"
    elif head.endswith("e") and not head.endswith("ee"):
        made = f"{head[:-1]}ing"
    else:
        made = f"{head}ing"
    return f"{made} {tail}" if tail else made


def _by_form(form: Iterable[tuple[Kind, str]]) -> dict[str, frozenset[Kind]]:
    kinds: dict[str, set[Kind]] = {}
    for kind, word in form:
        for spelled in (word.replace("l?", "l"), word.replace("l?", "")) if "l?" in word else (word,):
            kinds.setdefault(spelled, set()).add(kind)
    return {word: frozenset(found) for word, found in kinds.items()}


_VERBS = [(kind, verb) for kind in KINDS for verb in ENGLISH[kind].split()]
_AHEAD: Mapping[Kind, str] = {
    "search": "find locate look_into dig_into gather",
    "read": "see take_a_look_at have_a_look_at look_at investigate analyze analyse gather dig_into retrieve",
    "run": "try",
}
"""Verbs that announce an action and claim none: what was "found" or "seen" may stand in the text itself."""
BASE = _by_form((kind, verb.replace("_", " ")) for kind, verb in _VERBS)
PAST = _by_form((kind, _past(verb)[0]) for kind, verb in _VERBS)
PARTICIPLE = _by_form((kind, _past(verb)[1]) for kind, verb in _VERBS)
GERUND = _by_form((kind, _gerund(verb)) for kind, verb in _VERBS)


def _foreign(table: Mapping[Kind, str], language: int) -> dict[str, frozenset[Kind]]:
    return _by_form(
        (kind, word.replace("_", " ")) for kind in KINDS for word in table[kind].split("|")[language].split()
    )


DONE = tuple(_foreign(FOREIGN_DONE, language) for language in range(4))
"""Finished forms of German, French, Spanish, Chinese, in this order."""
SOON = tuple(_foreign(FOREIGN_SOON, language) for language in range(4))
AHEAD = {**BASE, **_by_form((kind, verb.replace("_", " ")) for kind, verbs in _AHEAD.items() for verb in verbs.split())}
"""Base forms in announcements."""
ASKED = tuple(_foreign(FOREIGN_ASKED, language) for language in range(4))
_OWN_TOPICS: Mapping[Topic, str] = {
    "mail": "emailed e-mailed texted messaged replied",
    "ticket": "escalated",
    "file": "committed pushed merged",
    "run": "deployed compiled installed restarted linted",
    "order": "refunded purchased",
    "calendar": "scheduled rescheduled",
    "web": "googled browsed",
}
VERB_TOPICS = {verb: topic for topic, verbs in _OWN_TOPICS.items() for verb in verbs.split()}
"""Verbs that say by themselves what they act on."""


def alternatives(words: Iterable[str]) -> str:
    """A regex alternative of words, longest first."""
    return "|".join(re.escape(word).replace(r"\ ", " ") for word in sorted(words, key=lambda word: (-len(word), word)))


TOPIC_OF: Mapping[str, frozenset[Topic]]
_collected: dict[str, set[Topic]] = {}
for _topic, _nouns in _TOPICS.items():
    for _noun in _nouns.split():
        _collected.setdefault(_noun.replace("_", " "), set()).add(_topic)
TOPIC_OF = MappingProxyType({noun: frozenset(found) for noun, found in _collected.items()})
_CJK_TOPICS = tuple(noun for noun in TOPIC_OF if not noun.isascii() and "\u4e00" <= noun[0] <= "\u9fff")
_PHRASES = tuple(noun for noun in TOPIC_OF if " " in noun)
_WORD = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*")


def words_of(text: str) -> frozenset[str]:
    """The words of a text, lower-cased, each also without a plural ending."""
    found = {word.lower() for word in _WORD.findall(text)}
    singular = {word[:-1] for word in found if word.endswith("s") and len(word) > 3}
    singular |= {f"{word[:-3]}y" for word in found if word.endswith("ies") and len(word) > 4}
    singular |= {word[:-2] for word in found if word.endswith(("xes", "ches", "shes", "sses", "ien", "ern"))}
    return frozenset(found | singular)


def topics_of(text: str) -> frozenset[Topic]:
    """The fields that the nouns of a text belong to."""
    words = words_of(text)
    found = {topic for word in words for topic in TOPIC_OF.get(word, ())}
    lowered = text.lower()
    for noun in (*_CJK_TOPICS, *_PHRASES):
        if noun in lowered:
            found |= TOPIC_OF[noun]
    return frozenset(found)
