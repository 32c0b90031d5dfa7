package plural

// entry is a word and its plural, or the end of a word and the end of its plural.
type entry struct{ singular, plural string }

// wholeWords is a dictionary of words. No other word ends with one of them.
var wholeWords = []entry{
	{"ox", "oxen"}, {"louse", "lice"}, {"die", "dice"}, {"axis", "axes"}, {"alias", "aliases"}, {"use", "uses"},
	{"toe", "toes"},
}

// words is a dictionary of words. Longer words end with them, such as snowman with man. If a word ends with
// several of them, the first one decides: nonhuman ends with human and with man.
var words = []entry{
	{"graffiti", "graffiti"}, {"shoe", "shoes"}, {"formula", "formulas"}, {"agenda", "agendas"},
	{"pretorium", "pretoriums"}, {"cookie", "cookies"}, {"movie", "movies"}, {"move", "moves"}, {"hive", "hives"},
	{"chive", "chives"}, {"thief", "thieves"}, {"hoof", "hoofs"}, {"dwarf", "dwarfs"}, {"rice", "rice"},
	{"news", "news"}, {"money", "money"}, {"jeans", "jeans"}, {"information", "information"},
	{"equipment", "equipment"}, {"tomato", "tomatoes"}, {"potato", "potatoes"}, {"buffalo", "buffaloes"},
	{"topaz", "topazes"}, {"ache", "aches"}, {"pause", "pauses"}, {"muse", "muses"}, {"misuse", "misuses"},
	{"house", "houses"}, {"fuse", "fuses"}, {"excuse", "excuses"}, {"cruse", "cruses"}, {"clause", "clauses"},
	{"cause", "causes"}, {"abuse", "abuses"}, {"vedalia", "vedalias"}, {"basis", "bases"}, {"base", "bases"},
	{"testis", "testes"}, {"thesis", "theses"}, {"oasis", "oases"}, {"genesis", "geneses"},
	{"ellipsis", "ellipses"}, {"crisis", "crises"}, {"helix", "helices"}, {"radix", "radices"},
	{"appendix", "appendices"}, {"vortex", "vortices"}, {"vertex", "vertices"}, {"latex", "latices"},
	{"index", "indices"}, {"codex", "codices"}, {"apex", "apices"}, {"uva", "uvae"}, {"praecava", "praecavae"},
	{"postcava", "postcavae"}, {"larva", "larvae"}, {"vita", "vitae"}, {"minutia", "minutiae"},
	{"differentia", "differentiae"}, {"vertebra", "vertebrae"}, {"alumna", "alumnae"}, {"genus", "genera"},
	{"corpus", "corpora"}, {"syllabus", "syllabi"}, {"radius", "radii"}, {"octopus", "octupuses"},
	{"nucleus", "nuclei"}, {"locus", "loci"}, {"focus", "foci"}, {"coccus", "cocci"}, {"cactus", "cacti"},
	{"bacillus", "bacilli"}, {"alumnus", "alumni"}, {"quota", "quotas"}, {"curriculum", "curriculums"},
	{"symposium", "symposia"}, {"auditorium", "auditoria"}, {"aquarium", "aquaria"}, {"stadium", "stadiums"},
	{"medium", "media"}, {"media", "media"}, {"taxon", "taxa"}, {"phenomenon", "phenomena"},
	{"noumenon", "noumena"}, {"mitochondrion", "mitochondria"}, {"lexicon", "lexica"}, {"ganglion", "ganglia"},
	{"criterion", "criteria"}, {"bureau", "bureaus"}, {"fabliau", "fabliaux"}, {"adieu", "adieux"},
	{"person", "people"}, {"woman", "women"}, {"tooth", "teeth"}, {"mouse", "mice"}, {"human", "humans"},
	{"man", "men"}, {"goose", "geese"}, {"foot", "feet"}, {"child", "children"}, {"you", "you"}, {"tuna", "tuna"},
	{"trout", "trout"}, {"swine", "swine"}, {"species", "species"}, {"shrimp", "shrimp"}, {"sheep", "sheep"},
	{"series", "series"}, {"salmon", "salmon"}, {"police", "police"}, {"moose", "moose"}, {"fish", "fish"},
	{"deer", "deer"}, {"chassis", "chassis"}, {"blues", "blues"}, {"bison", "bison"}, {"beef", "beef"},
	{"aircraft", "aircraft"},
}

// otherPlurals are plurals that are in use beside those in the dictionary.
var otherPlurals = []string{
	"beefs", "fishes", "salmons", "shrimps", "swines", "trouts", "tunas", "adieus", "bureaux", "ganglions",
	"lexicons", "mitochondrions", "mediums", "stadia", "aquariums", "auditoriums", "symposiums", "curricula",
	"alumnuses", "cactuses", "focuses", "locuses", "nucleuses", "octopi", "radiuses", "corpuses", "apexes",
	"codexes", "indexes", "latexes", "vertexes", "vortexes", "appendixes", "radixes", "helixes", "buffalos",
	"dwarves", "hooves", "formulae",
}

// suffixes has the ends of words. The first suffix that fits decides.
var suffixes = []entry{
	{"tive", "tives"}, {"eaf", "eaves"}, {"oaf", "oaves"}, {"afe", "aves"}, {"arf", "arves"}, {"rfe", "rves"},
	{"rf", "rves"}, {"lf", "lves"}, {"fe", "ves"}, {"ay", "ays"}, {"ey", "eys"}, {"oy", "oys"}, {"quy", "quies"},
	{"uy", "uys"}, {"y", "ies"}, {"eau", "eaux"}, {"bula", "bulae"}, {"dula", "bulae"}, {"lula", "bulae"},
	{"nula", "bulae"}, {"vula", "bulae"}, {"hedron", "hedra"}, {"ium", "ia"}, {"seum", "seums"}, {"eum", "ea"},
	{"oum", "oa"}, {"stracum", "straca"}, {"dum", "da"}, {"elum", "ela"}, {"ilum", "ila"}, {"olum", "ola"},
	{"ulum", "ula"}, {"llum", "lla"}, {"ylum", "yla"}, {"imum", "ima"}, {"ernum", "erna"}, {"gnum", "gna"},
	{"brum", "bra"}, {"crum", "cra"}, {"terum", "tera"}, {"serum", "sera"}, {"trum", "tra"}, {"antum", "anta"},
	{"atum", "ata"}, {"entum", "enta"}, {"etum", "eta"}, {"itum", "ita"}, {"otum", "ota"}, {"utum", "uta"},
	{"ctum", "cta"}, {"ovum", "ova"}, {"trix", "trices"}, {"iasis", "iases"}, {"mesis", "meses"},
	{"kinesis", "kineses"}, {"resis", "reses"}, {"gnosis", "gnoses"}, {"opsis", "opses"}, {"ysis", "yses"},
	{"ouse", "ouses"}, {"lause", "lauses"}, {"us", "uses"}, {"ch", "ches"}, {"io", "ios"}, {"sh", "shes"},
	{"ss", "sses"}, {"ez", "ezzes"}, {"iz", "izzes"}, {"tz", "tzes"}, {"zz", "zzes"}, {"ano", "anos"},
	{"lo", "los"}, {"to", "tos"}, {"oo", "oos"}, {"o", "oes"}, {"x", "xes"}, {"S", "Ses"},
}

// acronyms has the acronyms behind which another word may begin, as in HTTPRoute. A blank stands on both sides of each.
const acronyms = " " +
	"ACK ACL ADSL AES ANSI API ARP ATM BGP BSS CCITT CHAP CIDR CIR CLI CMOS CPE CPU CRC CRT CSMA DCE DEC DES DHCP DMI DNS " +
	"DRAM DSL DSLAM DTE EHA EIA EIGRP EOF ESS FCC FCS FDDI FTP GBIC GEPOF HDLC HTML HTTP HTTPS IANA ICMP ID IDF IDS IEEE " +
	"IETF IMAP IP IPS ISDN ISP JSON JWT LACP LAN LAPB LAPF LLC MAC MC MDF MIB MPLS MTU NAC NAT NBMA NIC NRZ NRZI NVRAM OK " +
	"OSI OSPF OUI PAP PAT PC PCM PDU PIM POP3 POTS PPP PPTP PTT PVST RAM RARP RCP RFC RIP RLL ROM RSTP RTP SDLC SFD SFP " +
	"SLARP SLIP SMTP SNA SNAP SNMP SOF SQL SRAM SSH SSID STP SYN TDM TFTP TIA TOFU UDP URI URL USB UTF8 UTP UUID VC VLAN " +
	"VLSM VPN W3C WAN WEP WPA WWW "
